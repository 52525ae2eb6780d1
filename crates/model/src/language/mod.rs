//! The model language: KDL documents read into a [`Model`].
//!
//! Every declaration is one file here: its syntax and meaning, its row in [`TABLE`], its parsed struct and its checks.
//! The table alone drives parsing and the error for an unknown declaration. Reading has three steps: KDL to nodes,
//! nodes to a model (each declaration's `parse`), and the checks of the whole ([`crate::check`]). The first two report
//! everything they find; the third runs only on a model that was read without an error, so that it needs no guesses.

mod args;
pub mod bucket;
pub mod compress;
pub mod copy;
pub mod count;
pub mod derived;
pub mod edge;
pub mod embed;
pub mod entity;
pub mod enumeration;
pub mod expect;
pub mod expire;
pub mod field;
pub mod files;
pub mod filter;
pub mod latest;
pub mod live;
pub mod max;
pub mod min;
pub mod query;
pub mod recent;
pub mod reference;
pub mod rollup;
pub mod series;
pub mod shard;
pub mod snapshot;
pub mod split;
pub mod states;
pub mod stock;
pub mod sum;
pub mod timeline;
pub mod unique;
pub mod version;

pub(crate) use args::Args;

use crate::error::{Error, Result};
use crate::model::{Body, Model};
use crate::problem::{Problem, Problems, Sources, Span, suggest};
use kdl::{KdlDocument, KdlNode};
use std::path::{Path, PathBuf};

/// The ending of a model's files.
pub const EXTENSION: &str = ".sheaf.kdl";

/// A model's files together hold at most this much.
pub const MAX_SOURCE_BYTES: u64 = 16 << 20;

/// Declarations are nested at most this deep.
const MAX_DEPTH: usize = 32;

/// One row of the table of declarations.
pub struct Declaration {
    /// The node's name.
    pub name: &'static str,
    /// Where it may stand.
    pub places: &'static [Place],
    /// Its syntax, as shown in help texts.
    pub syntax: &'static str,
    /// What it means, in one line.
    pub meaning: &'static str,
    pub(crate) parse: fn(&mut Reader, &KdlNode, Target<'_>),
}

/// Where a declaration may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In no other declaration.
    Top,
    /// In an `entity`.
    Entity,
    /// In an `embed`, or in a `field` of type `object`.
    Embed,
    /// In an `edge`.
    Edge,
}

impl Place {
    fn noun(self) -> &'static str {
        match self {
            Place::Top => "at the top of a file",
            Place::Entity => "in an entity",
            Place::Embed => "in an embed",
            Place::Edge => "in an edge",
        }
    }
}

/// What a declaration adds itself to.
pub(crate) enum Target<'a> {
    Model(&'a mut Model),
    Entity(&'a mut entity::Entity),
    Embed(&'a mut Body, &'a mut Option<expect::Expect>),
    Edge(&'a mut edge::Edge),
}

impl Target<'_> {
    fn place(&self) -> Place {
        match self {
            Target::Model(_) => Place::Top,
            Target::Entity(_) => Place::Entity,
            Target::Embed(..) => Place::Embed,
            Target::Edge(_) => Place::Edge,
        }
    }

    fn reborrow(&mut self) -> Target<'_> {
        match self {
            Target::Model(model) => Target::Model(model),
            Target::Entity(entity) => Target::Entity(entity),
            Target::Embed(body, expect) => Target::Embed(body, expect),
            Target::Edge(edge) => Target::Edge(edge),
        }
    }

    /// The fields that a `field`, `ref`, … adds itself to.
    pub(crate) fn body(&mut self) -> &mut Body {
        match self {
            Target::Entity(entity) => &mut entity.body,
            Target::Embed(body, _) => body,
            Target::Edge(edge) => &mut edge.body,
            Target::Model(_) => unreachable!("the table lets no field stand at the top"),
        }
    }

    /// The expectation that an `expect` sets.
    pub(crate) fn expect(&mut self) -> &mut Option<expect::Expect> {
        match self {
            Target::Entity(entity) => &mut entity.expect,
            Target::Embed(_, expect) => expect,
            Target::Edge(edge) => &mut edge.expect,
            Target::Model(_) => unreachable!("the table lets no expect stand at the top"),
        }
    }

    /// The entity that a part of an entity adds itself to.
    pub(crate) fn entity(&mut self) -> &mut entity::Entity {
        match self {
            Target::Entity(entity) => entity,
            _ => unreachable!("the table lets it stand in an entity only"),
        }
    }

    /// The model that a declaration of the top adds itself to.
    pub(crate) fn model(&mut self) -> &mut Model {
        match self {
            Target::Model(model) => model,
            _ => unreachable!("the table lets it stand at the top only"),
        }
    }
}

/// Every declaration, by name.
pub const TABLE: &[Declaration] = &[
    bucket::ROW,
    compress::ROW,
    count::ROW,
    edge::ROW,
    embed::ROW,
    entity::ROW,
    enumeration::ROW,
    expect::ROW,
    expire::ROW,
    field::ROW,
    files::ROW,
    latest::ROW,
    live::ROW,
    max::ROW,
    min::ROW,
    query::ROW,
    recent::ROW,
    reference::ROW,
    rollup::ROW,
    series::ROW,
    shard::ROW,
    snapshot::ROW,
    split::ROW,
    states::ROW,
    stock::ROW,
    sum::ROW,
    timeline::ROW,
    unique::ROW,
    version::ROW,
];

/// A model that was accepted, with what is doubtful in it.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The model, in canonical order.
    pub model: Model,
    /// Warnings only.
    pub warnings: Problems,
}

/// Reads and checks the model in a file, or in all `*.sheaf.kdl` files of a folder and its sub-folders.
///
/// # Errors
/// [`Error::Unreadable`], [`Error::NoModel`], or [`Error::Refused`] with every problem that was found.
pub fn load(path: &Path) -> Result<Checked> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Unreadable { path, source }
    };
    let mut files = Vec::new();
    if path.is_dir() {
        collect(path, &mut files, 0).map_err(unreadable(path))?;
        if files.is_empty() {
            return Err(Error::NoModel { path: path.to_owned() });
        }
    } else {
        files.push(path.to_owned());
    }
    let mut sources = Sources::default();
    let mut total = 0;
    for file in files {
        total += std::fs::metadata(&file).map_err(unreadable(&file))?.len();
        if total > MAX_SOURCE_BYTES {
            let source = std::io::Error::other(format!("a model's files hold at most {MAX_SOURCE_BYTES} bytes"));
            return Err(Error::Unreadable { path: file, source });
        }
        let text = std::fs::read_to_string(&file).map_err(unreadable(&file))?;
        sources.push(file.display().to_string(), text);
    }
    parse(sources).map_err(Error::Refused)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>, depth: usize) -> std::io::Result<()> {
    let mut entries: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            if depth < MAX_DEPTH {
                collect(&path, files, depth + 1)?;
            }
        } else if entry.file_name().to_string_lossy().ends_with(EXTENSION) {
            files.push(path);
        }
    }
    Ok(())
}

/// Reads and checks a model.
///
/// # Errors
/// Every problem that was found, warnings included, if one of them is an error.
pub fn parse(sources: Sources) -> Result<Checked, Problems> {
    let mut reader = Reader { problems: Problems::new(sources.clone()), path: Vec::new(), source: 0 };
    let mut model = Model::new();
    for (number, (_, text)) in sources.iter().enumerate() {
        reader.source = number as u32;
        match text.parse::<KdlDocument>() {
            Ok(document) => reader.nodes(&document, Target::Model(&mut model)),
            Err(error) => reader.syntax(text, &error),
        }
    }
    model.canonicalize();
    if !reader.problems.has_errors() {
        crate::check::check(&model, &mut reader.problems);
    }
    reader.problems.sort();
    if reader.problems.has_errors() {
        return Err(reader.problems);
    }
    Ok(Checked { model, warnings: reader.problems })
}

/// What reading a model carries along.
pub(crate) struct Reader {
    pub(crate) problems: Problems,
    path: Vec<String>,
    source: u32,
}

impl Reader {
    /// A place in the source being read.
    pub(crate) fn span(&self, span: miette::SourceSpan) -> Span {
        Span { source: self.source, offset: span.offset() as u32, len: span.len() as u32 }
    }

    /// The place of a node without its children.
    pub(crate) fn head_span(&self, node: &KdlNode) -> Span {
        let start = node.name().span();
        let end = node.entries().iter().map(|entry| entry.span().offset() + entry.span().len()).max();
        let end = end.unwrap_or(0).max(start.offset() + start.len());
        Span { source: self.source, offset: start.offset() as u32, len: (end - start.offset()) as u32 }
    }

    /// What a message starts with: the entity and the declaration in it.
    pub(crate) fn here(&self, node: &KdlNode) -> String {
        let first = node.entries().iter().find(|entry| entry.name().is_none());
        let name = first.and_then(|entry| entry.value().as_string()).map(|name| format!(" `{name}`"));
        let declaration = format!("{}{}", node.name().value(), name.unwrap_or_default());
        match self.path.is_empty() {
            true => declaration,
            false => format!("`{}`, {declaration}", self.path.join(".")),
        }
    }

    /// Reads the nodes of a document, or of a node's children, into `target`.
    pub(crate) fn nodes(&mut self, document: &KdlDocument, mut target: Target<'_>) {
        for node in document.nodes() {
            let name = node.name().value();
            let place = target.place();
            let row = TABLE.iter().find(|row| row.name == name);
            match row {
                Some(row) if row.places.contains(&place) => (row.parse)(self, node, target.reborrow()),
                Some(row) => {
                    let places: Vec<&str> = row.places.iter().map(|place| place.noun()).collect();
                    let message = format!("{}: `{name}` cannot stand {}", self.here(node), place.noun());
                    let problem = Problem::new("misplaced-declaration", self.span(node.name().span()), message);
                    self.problems.push(problem.help(format!("it belongs {}", places.join(" or "))));
                }
                None => {
                    let known = TABLE.iter().filter(|row| row.places.contains(&place)).map(|row| row.name);
                    let message = format!("{}: there is no declaration `{name}`", self.here(node));
                    let problem = Problem::new("unknown-declaration", self.span(node.name().span()), message);
                    self.problems.push(problem.help(suggest(name, "declarations", known)));
                }
            }
        }
    }

    /// Reads a node's children into `target`, with `name` as the next part of the path in messages.
    pub(crate) fn children(&mut self, node: &KdlNode, name: &str, target: Target<'_>) {
        let Some(children) = node.children() else { return };
        if self.path.len() >= MAX_DEPTH {
            let problem = Problem::new("too-deep", self.head_span(node), "declarations are nested too deeply");
            self.problems.push(problem.help(format!("at most {MAX_DEPTH} levels")));
            return;
        }
        self.path.push(name.to_owned());
        self.nodes(children, target);
        self.path.pop();
    }

    /// Reads a node's children with a function that returns whether it knew the child.
    pub(crate) fn lines(
        &mut self,
        node: &KdlNode,
        name: &str,
        known: &[&'static str],
        mut line: impl FnMut(&mut Reader, &KdlNode),
    ) {
        let Some(children) = node.children() else { return };
        self.path.push(name.to_owned());
        for child in children.nodes() {
            let word = child.name().value();
            if known.contains(&word) {
                line(self, child);
            } else {
                let message = format!("{}: there is no `{word}` in `{}`", self.here(child), node.name().value());
                let problem = Problem::new("unknown-declaration", self.span(child.name().span()), message);
                self.problems.push(problem.help(suggest(word, "lines", known.iter().copied())));
            }
        }
        self.path.pop();
    }

    /// Reports children where none may be.
    pub(crate) fn no_children(&mut self, node: &KdlNode) {
        if node.children().is_some_and(|children| !children.nodes().is_empty()) {
            let message = format!("{}: `{}` takes no block", self.here(node), node.name().value());
            self.problems
                .push(Problem::new("unknown-declaration", self.head_span(node), message).help("remove the { … }"));
        }
    }

    /// Reports text that is not KDL.
    fn syntax(&mut self, text: &str, error: &kdl::KdlError) {
        for diagnostic in &error.diagnostics {
            let offset = diagnostic.span.offset().min(text.len());
            let len = diagnostic.span.len().min(text.len() - offset);
            let span = Span { source: self.source, offset: offset as u32, len: len as u32 };
            let message = diagnostic.message.clone().unwrap_or_else(|| "this is not KDL".into());
            let mut problem = Problem::new("syntax", span, format!("not KDL: {message}"));
            if let Some(label) = &diagnostic.label {
                problem = problem.label(label.clone());
            }
            let line = text[..offset].rfind('\n').map_or(0, |at| at + 1);
            let end = text[offset..].find('\n').map_or(text.len(), |at| offset + at);
            let line = text.get(line..end).unwrap_or("");
            problem.help = if line.contains("=true") || line.contains("=false") || line.contains("=null") {
                Some("in KDL the constants are written #true, #false and #null".into())
            } else {
                diagnostic.help.clone()
            };
            self.problems.push(problem);
        }
    }
}
