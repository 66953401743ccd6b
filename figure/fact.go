package figure

// Fact is a name and its value, for people.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
