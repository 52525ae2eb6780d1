//! What an expression sees while it is evaluated: the document, the variables, the environment.

use crate::document::Value;
use crate::document::collation::Collator;
use crate::expression::VariableId;
use bson::{DateTime, RawBsonRef, RawDocument, Timestamp};
use std::sync::Arc;

/// What stays the same for a whole operation. Clock and randomness come in from outside.
#[derive(Clone)]
pub struct Environment {
    /// `$$NOW`: the same for the whole operation.
    pub now: DateTime,
    /// `$$CLUSTER_TIME`.
    pub cluster_time: Timestamp,
    /// The operation's collation; `None` compares strings by bytes.
    pub collator: Option<Arc<Collator>>,
    /// The values of `let`, evaluated, under the ids that the parser gave them.
    pub variables: Vec<(VariableId, Value<'static>)>,
    /// A source of numbers in `[0, 1)` for `$rand`, `$sampleRate` and `$sample`.
    pub random: Arc<dyn Fn() -> f64 + Send + Sync>,
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment").field("now", &self.now).finish_non_exhaustive()
    }
}

impl Environment {
    /// An environment at a fixed time, without collation, variables or randomness (every number is 0.5): for constant
    /// folding and tests.
    pub fn fixed() -> Environment {
        Environment {
            now: DateTime::from_millis(0),
            cluster_time: Timestamp { time: 0, increment: 0 },
            collator: None,
            variables: Vec::new(),
            random: Arc::new(|| 0.5),
        }
    }

    /// The collation to compare strings by.
    pub fn collator(&self) -> Option<&Collator> {
        self.collator.as_deref()
    }
}

/// A variable's value, linked to the ones bound before it.
#[derive(Debug)]
pub struct Binding<'a> {
    /// Which variable.
    pub id: VariableId,
    /// Its value.
    pub value: Value<'a>,
    /// The bindings around it.
    pub outer: Option<&'a Binding<'a>>,
}

/// The scope of one evaluation.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// `$$ROOT`.
    pub root: RawBsonRef<'a>,
    /// The innermost binding.
    pub bindings: Option<&'a Binding<'a>>,
    /// What stays the same for the operation.
    pub environment: &'a Environment,
}

impl<'a> Scope<'a> {
    /// A scope over a document.
    pub fn new(root: &'a RawDocument, environment: &'a Environment) -> Scope<'a> {
        Scope { root: RawBsonRef::Document(root), bindings: None, environment }
    }

    /// The binding to put into a `let` before [`Scope::with`]: `let binding = scope.bind(id, value); let inner = scope.with(&binding);`
    pub fn bind<'b>(&self, id: VariableId, value: Value<'b>) -> Binding<'b>
    where
        'a: 'b,
    {
        Binding { id, value, outer: self.bindings }
    }

    /// The same scope with one more binding.
    pub fn with<'b>(&self, binding: &'b Binding<'b>) -> Scope<'b>
    where
        'a: 'b,
    {
        Scope { root: self.root, bindings: Some(binding), environment: self.environment }
    }

    /// The value of a variable, or missing.
    pub fn variable(&self, id: VariableId) -> Value<'a> {
        if id == VariableId::ROOT {
            return Value::Borrowed(self.root);
        }
        let mut next = self.bindings;
        while let Some(binding) = next {
            if binding.id == id {
                return binding.value.borrow();
            }
            next = binding.outer;
        }
        self.environment.variables.iter().find(|entry| entry.0 == id).map_or(Value::Missing, |entry| entry.1.borrow())
    }
}
