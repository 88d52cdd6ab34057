package prompt

// Visible is what is quoted of a text.
var Visible = visible
