//! Every line of SQL text of the .rpd format.
