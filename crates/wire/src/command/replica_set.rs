//! `replSetGetStatus` and `replSetGetConfig` of the one-member set that we present ourselves as.

use super::{Command, Context, Run};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use engine::Result;

/// `replSetGetConfig`.
pub(crate) static GET_CONFIG: Command = Command {
    name: "replSetGetConfig",
    help: "returns the configuration of the one-member replica set",
    admin_only: true,
    rights: Rights::Cluster(Action::ReplSetGetConfig),
    run: Run::Now(config),
    ..Command::DEFAULT
};

/// `replSetGetStatus`.
pub(crate) static GET_STATUS: Command = Command {
    name: "replSetGetStatus",
    help: "returns the state of the one-member replica set",
    admin_only: true,
    rights: Rights::Cluster(Action::ReplSetGetStatus),
    run: Run::Now(status),
    ..Command::DEFAULT
};

fn config(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    reply.begin("config");
    reply.put("_id", ctx.shared.config.set_name.as_str());
    reply.put("version", 1);
    reply.put("term", 1_i64);
    reply.begin_array("members");
    reply.begin_element();
    reply.put("_id", 0);
    reply.put("host", super::hello::own_address(ctx).as_str());
    reply.put("arbiterOnly", false);
    reply.put("buildIndexes", true);
    reply.put("hidden", false);
    reply.put("priority", 1);
    reply.begin("tags");
    reply.end();
    reply.put("secondaryDelaySecs", 0_i64);
    reply.put("votes", 1);
    reply.end();
    reply.end();
    reply.put("protocolVersion", 1_i64);
    reply.put("writeConcernMajorityJournalDefault", true);
    reply.begin("settings");
    reply.put("replicaSetId", ctx.shared.process_id);
    reply.end();
    reply.end();
    Ok(())
}

fn status(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let time = ctx.shared.cluster_time();
    let optime = |reply: &mut Writer, name: &str| {
        reply.begin(name);
        reply.put("ts", time);
        reply.put("t", 1_i64);
        reply.end();
    };
    reply.put("set", ctx.shared.config.set_name.as_str());
    reply.put("date", bson::DateTime::now());
    reply.put("myState", 1);
    reply.put("term", 1_i64);
    reply.put("heartbeatIntervalMillis", 2000_i64);
    reply.put("majorityVoteCount", 1);
    reply.put("writeMajorityCount", 1);
    reply.put("votingMembersCount", 1);
    reply.put("writableVotingMembersCount", 1);
    reply.begin("optimes");
    for name in ["lastCommittedOpTime", "readConcernMajorityOpTime", "appliedOpTime", "durableOpTime"] {
        optime(reply, name);
    }
    reply.end();
    reply.begin_array("members");
    reply.begin_element();
    reply.put("_id", 0);
    reply.put("name", super::hello::own_address(ctx).as_str());
    reply.put("health", 1.0);
    reply.put("state", 1);
    reply.put("stateStr", "PRIMARY");
    reply.put("uptime", ctx.shared.started.elapsed().as_secs() as i32);
    optime(reply, "optime");
    reply.put("configVersion", 1);
    reply.put("configTerm", 1);
    reply.put("self", true);
    reply.end();
    reply.end();
    Ok(())
}
