package figure

import "slices"

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
	Warning bool   `json:"warning,omitempty"` // speaks against relying on something, which the title names by itself
}

// Warning is the title of a note that warns, and the identifier of its section.
type Warning struct{ Title, Section string }

// Warnings are those of some sections, in reading order, each title once.
func Warnings(sections []Section) (all []Warning) {
	for _, s := range sections {
		for _, item := range s.Items {
			if n := item.Note; n != nil && n.Warning && !slices.ContainsFunc(all, func(w Warning) bool { return w.Title == n.Title }) {
				all = append(all, Warning{n.Title, s.ID})
			}
		}
	}
	return all
}

// Verdicts is the section that opens a report with warnings; there is none without notes.
func Verdicts(notes []Note) []Section {
	if len(notes) == 0 {
		return nil
	}
	s := Section{ID: "verdicts", Title: "Before you rely on this result"}
	for _, n := range notes {
		n.Warning = true
		s.Items = append(s.Items, Item{Note: &n})
	}
	return []Section{s}
}

// Fact is a name and its value, for people.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
