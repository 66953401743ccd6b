package study

// Document is a kind of YAML file beside plans that people write.
type Document struct {
	Kind, Plural string // in one word each, such as policy and policies
	First        string // the key that it begins with, which holds its version
}

var plans = Document{Kind: "plan", Plural: "plans", First: "parley"}

// Decode decodes one such file into v, a pointer to a struct with json tags
// (see [Methods]), as strictly as a plan: unknown keys, wrong types and keys
// that stand twice are problems, with line, column and hint. Then check says
// what else is wrong, by paths such as lifetime.epsilon; missing says whether
// nothing was written for a path. Everything found comes back as one
// problem.List; name stands for the file in it.
func (k Document) Decode(name string, b []byte, v any, check func(missing func(path string) bool, report func(path, what, hint string))) error {
	d := newDecoder(name, nil)
	d.document = k
	if root := d.parse(b); root != nil {
		d.value(root, reflectValue(v), "")
		check(d.missing, d.report)
	}
	return d.problems.Err()
}
