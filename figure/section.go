package figure

// Section is a part of a report: a heading, what it is about in plain
// sentences, and the things to look at, in order.
type Section struct {
	ID    string `json:"id"` // anchor: a-z, 0-9 and hyphens
	Title string `json:"title"`
	Lead  string `json:"lead,omitempty"` // paragraphs, parted by empty lines
	Items []Item `json:"items,omitempty"`
}

// Item is one thing to look at: exactly one of its fields is set.
type Item struct {
	Figure *Figure `json:"figure,omitempty"`
	Table  *Table  `json:"table,omitempty"`
	Note   *Note   `json:"note,omitempty"`
}

// Note is a statement set apart from the text, such as what a run did and did
// not protect.
type Note struct {
	Title   string `json:"title"`
	Text    string `json:"text"`              // paragraphs, parted by empty lines
	Warning bool   `json:"warning,omitempty"` // the reader should act or take care
}

// Fact is a name and its value, for people.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
