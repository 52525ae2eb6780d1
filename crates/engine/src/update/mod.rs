//! Update operators: the document after from the document before.
