//! `hostInfo`: the machine.

use super::{Command, Context, Run};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use engine::Result;

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "hostInfo",
    help: "says what machine the server runs on",
    admin_only: false,
    rights: Rights::Cluster(Action::HostInfo),
    run: Run::Now(run),
    ..Command::DEFAULT
};

fn run(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    super::diagnostic::NoArguments::parse(ctx)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as i32;
    let memory = memory_megabytes();
    reply.begin("system");
    reply.put("currentTime", bson::DateTime::now());
    reply.put("hostname", host_name().as_str());
    reply.put("cpuAddrSize", usize::BITS as i32);
    reply.put("memSizeMB", memory);
    reply.put("memLimitMB", memory);
    reply.put("numCores", cores);
    reply.put("numCoresAvailableToProcess", cores);
    reply.put("numPhysicalCores", cores);
    reply.put("numCpuSockets", 1);
    reply.put("cpuArch", std::env::consts::ARCH);
    reply.put("numaEnabled", false);
    reply.put("numNumaNodes", 1);
    reply.end();
    reply.begin("os");
    reply.put("type", "Linux");
    reply.put("name", first_line("/proc/sys/kernel/ostype").as_str());
    reply.put("version", first_line("/proc/sys/kernel/osrelease").as_str());
    reply.end();
    reply.begin("extra");
    reply.put("versionString", first_line("/proc/version").as_str());
    reply.put("libcVersion", "unknown");
    reply.put("kernelVersion", first_line("/proc/sys/kernel/osrelease").as_str());
    reply.put("cpuFrequencyMHz", "unknown");
    reply.put("cpuFeatures", "unknown");
    reply.put("pageSize", 4096_i64);
    reply.put("numPages", memory * 256);
    reply.put("maxOpenFiles", 0);
    reply.end();
    Ok(())
}

/// The machine's name.
pub(crate) fn host_name() -> String {
    first_line("/proc/sys/kernel/hostname")
}

fn first_line(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}

fn memory_megabytes() -> i64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    total.and_then(|rest| rest.split_whitespace().next()?.parse::<i64>().ok()).map_or(0, |kilobytes| kilobytes / 1024)
}
