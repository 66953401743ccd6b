package document

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"parley/problem"
)

// scalarForm is implemented by structs that may be written as one word.
type scalarForm interface{ FromScalar(s string) }

// wordForm is implemented by whole numbers in the place of which a word may stand; it says whether there is such.
type wordForm interface{ FromWord(s string) bool }

// Value decodes a node into what v points to.
func (d *Decoder) Value(n ast.Node, v any, path string) { d.value(n, reflect.ValueOf(v).Elem(), path) }

// value decodes a node into v; path is where it stands, for reports.
func (d *Decoder) value(n ast.Node, v reflect.Value, path string) {
	if _, ok := d.at[path]; !ok {
		d.at[path] = startOf(n)
	}
	if n.Type() == ast.NullType {
		d.fail(path, "has no value", "give it one, or leave the key out")
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), path)
		return
	}
	if d.special != nil && d.special(d, n, v.Addr().Interface(), path) {
		return
	}
	if f, ok := v.Addr().Interface().(scalarForm); ok {
		if s, ok := text(n); ok {
			f.FromScalar(s)
			return
		} else if !isContainer(n) {
			d.fail(path, describe(n)+" where a name is expected",
				fmt.Sprintf("to mean the name, write it in quotes: %q", n.GetToken().Value))
			return
		}
	}
	switch v.Kind() {
	case reflect.Struct:
		if m, ok := d.Entries(n, path); ok {
			d.fields(m, v)
		}
	case reflect.Map: // of strings
		if m, ok := d.Entries(n, path); ok {
			v.Set(reflect.MakeMap(v.Type()))
			for _, e := range m {
				value := reflect.New(v.Type().Elem()).Elem()
				d.value(e.Node, value, e.Path)
				v.SetMapIndex(reflect.ValueOf(e.Key), value)
			}
		}
	case reflect.Slice, reflect.Array:
		d.list(n, v, path)
	default:
		if !scalar(n, v) {
			d.fail(path, fmt.Sprintf("%s where %s is expected", describe(n), expected(v)), quoteHint(n, v))
		}
	}
}

func (d *Decoder) list(n ast.Node, v reflect.Value, path string) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fail(path, describe(n)+" where a list is expected", "write [a, b], or each entry on a line of its own after "+
			"a dash")
		return
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), len(s.Values), len(s.Values)))
	} else if len(s.Values) != v.Len() {
		d.fail(path, fmt.Sprintf("%d entries where %d are expected", len(s.Values), v.Len()), "")
		return
	}
	failed := false
	for i, e := range s.Values {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.value(e, v.Index(i), at)
		failed = failed || v.Kind() == reflect.Array && d.failed[at] // of a pair, one alone says nothing
	}
	d.failed[path] = failed
}

// Entry is one key of a mapping with its value.
type Entry struct {
	Key, Path string
	at        position // of the key
	Node      ast.Node
}

// Entries returns the entries of a mapping, and reports keys that are not text
// or stand twice.
func (d *Decoder) Entries(n ast.Node, path string) ([]Entry, bool) {
	m, ok := n.(ast.MapNode)
	if !ok {
		d.fail(path, describe(n)+" where keys with values are expected", "write key: value, each on a line of its own")
		return nil, false
	}
	var entries []Entry
	for it := m.MapRange(); it.Next(); {
		kv := it.KeyValue()
		at := positionOf(kv.Key.GetToken())
		key, ok := text(kv.Key)
		if !ok || strings.ContainsAny(key, ".[]") {
			d.add(at, path, fmt.Sprintf("%q cannot be a key", kv.Key.GetToken().Value), "keys are plain words")
			continue
		}
		e := Entry{key, strings.TrimPrefix(path+"."+key, "."), at, kv.Value}
		if d.has(e.Path) {
			d.add(at, e.Path, "stands here a second time", fmt.Sprintf("the first is on line %d", d.at[e.Path].line))
			continue
		}
		d.at[e.Path] = at
		if !isContainer(kv.Value) && kv.Value.Type() != ast.NullType {
			d.at[e.Path] = startOf(kv.Value)
		}
		entries = append(entries, e)
	}
	return entries, true
}

func isContainer(n ast.Node) bool {
	return n.Type() == ast.MappingType || n.Type() == ast.MappingValueType || n.Type() == ast.SequenceType
}

// Fields decodes entries into the fields of the struct that v points to.
func (d *Decoder) Fields(entries []Entry, v any) { d.fields(entries, reflect.ValueOf(v).Elem()) }

// fields decodes entries into the fields of a struct.
func (d *Decoder) fields(entries []Entry, v reflect.Value) {
	byName := map[string]int{}
	var names []string
	for i := range v.NumField() {
		if name := Key(v.Type().Field(i)); name != "" {
			byName[name] = i
			names = append(names, name)
		}
	}
	for _, e := range entries {
		i, ok := byName[e.Key]
		if !ok {
			what, hint := "unknown key", problem.DidYouMean(e.Key, names, "valid here: "+strings.Join(names, ", "))
			if f, ok := v.Addr().Interface().(Former); ok && f.Former(e.Key) != "" {
				what, hint = "this key no longer exists", f.Former(e.Key)
			}
			d.add(e.at, e.Path, what, hint)
			continue
		}
		d.value(e.Node, v.Field(i), e.Path)
	}
}

// Key returns the key of an exported field, "" if it has none: fields with the tag
// yaml:"-" follow from the rest of a plan, and are in its encoding alone.
func Key(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" || f.Tag.Get("yaml") == "-" || !f.IsExported() {
		return ""
	}
	if name == "" {
		panic(fmt.Sprintf("document: field %s has no json tag", f.Name))
	}
	return name
}

// Optional says whether a field is left out where it is empty.
func Optional(f reflect.StructField) bool {
	return strings.HasSuffix(f.Tag.Get("json"), ",omitempty")
}

// Document is a kind of YAML file that people write.
type Document struct {
	Kind, Plural string // in one word each, such as policy and policies
	First        string // the key that it begins with, which holds its version
	// Special decodes what types do not tell, and says whether v, a pointer, was such; nil for a kind without any.
	Special func(d *Decoder, n ast.Node, v any, path string) bool
}

// Decode decodes one such file into v, a pointer to a struct with json tags: unknown keys, wrong types and keys
// that stand twice are problems, with line, column and hint. Then check says
// what else is wrong, by paths such as lifetime.epsilon; missing says whether
// nothing was written for a path. Everything found comes back as one
// problem.List; name stands for the file in it.
func (k Document) Decode(name string, b []byte, v any,
	check func(missing func(path string) bool, report func(path, what, hint string))) error {
	d := &Decoder{file: name, document: k, special: k.Special, at: map[string]position{}, failed: map[string]bool{}}
	if root := d.parse(b); root != nil {
		d.value(root, reflect.ValueOf(v).Elem(), "")
		check(d.missing, d.report)
	}
	return d.problems.Err()
}

// Cell is a number or a word, as it stands in a table.
type Cell string

// Former is implemented by structs that had other keys before: it says what to write in the
// place of one, and is empty for keys that never were.
type Former interface {
	Former(key string) string
}
