package tabular

import "io"

// Query is a question to a database whose answer is a table.
type Query struct {
	Driver string `json:"driver"`
	Query  string `json:"query"`
	Folder string `json:"-"`
}

// Check says what is wrong with it.
func (q *Query) Check() (what, hint string) { return "", "" }

// Open asks it.
func (q *Query) Open() (io.ReadCloser, error) { return nil, nil }
