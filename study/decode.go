package study

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"parley/problem"
)

func reflectValue(pointer any) reflect.Value { return reflect.ValueOf(pointer).Elem() }

// scalarForm is implemented by structs that may be written as one word.
type scalarForm interface{ FromScalar(s string) }

// wordForm is implemented by whole numbers in the place of which a word may stand; it says whether there is such.
type wordForm interface{ FromWord(s string) bool }

// FromScalar is a feature that is written as its name.
func (f *Feature) FromScalar(s string) { f.Name = s }

// value decodes a node into v; path is where it stands, for reports.
func (d *decoder) value(n ast.Node, v reflect.Value, path string) {
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
	if m, ok := v.Addr().Interface().(*Method); ok {
		d.method(n, m, path)
		return
	}
	if f, ok := v.Addr().Interface().(scalarForm); ok {
		if s, ok := text(n); ok {
			f.FromScalar(s)
			return
		} else if !isContainer(n) {
			d.fail(path, describe(n)+" where a name is expected", fmt.Sprintf("to mean the name, write it in quotes: %q", n.GetToken().Value))
			return
		}
	}
	switch v.Kind() {
	case reflect.Struct:
		if m, ok := d.mapping(n, path); ok {
			d.fields(m, v)
		}
	case reflect.Map: // of strings
		if m, ok := d.mapping(n, path); ok {
			v.Set(reflect.MakeMap(v.Type()))
			for _, e := range m {
				value := reflect.New(v.Type().Elem()).Elem()
				d.value(e.node, value, e.path)
				v.SetMapIndex(reflect.ValueOf(e.key), value)
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

func (d *decoder) list(n ast.Node, v reflect.Value, path string) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fail(path, describe(n)+" where a list is expected", "write [a, b], or each entry on a line of its own after a dash")
		return
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), len(s.Values), len(s.Values)))
	} else if len(s.Values) != v.Len() {
		d.fail(path, fmt.Sprintf("%d entries where %d are expected", len(s.Values), v.Len()), "")
		return
	}
	for i, e := range s.Values {
		d.value(e, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

// entry is one key of a mapping with its value.
type entry struct {
	key, path string
	at        position // of the key
	node      ast.Node
}

// mapping returns the entries of a mapping, and reports keys that are not text
// or stand twice.
func (d *decoder) mapping(n ast.Node, path string) ([]entry, bool) {
	m, ok := n.(ast.MapNode)
	if !ok {
		d.fail(path, describe(n)+" where keys with values are expected", "write key: value, each on a line of its own")
		return nil, false
	}
	var entries []entry
	for it := m.MapRange(); it.Next(); {
		kv := it.KeyValue()
		at := positionOf(kv.Key.GetToken())
		key, ok := text(kv.Key)
		if !ok || strings.ContainsAny(key, ".[]") {
			d.add(at, path, fmt.Sprintf("%q cannot be a key", kv.Key.GetToken().Value), "keys are plain words")
			continue
		}
		e := entry{key, strings.TrimPrefix(path+"."+key, "."), at, kv.Value}
		if d.has(e.path) {
			d.add(at, e.path, "stands here a second time", fmt.Sprintf("the first is on line %d", d.at[e.path].line))
			continue
		}
		d.at[e.path] = at
		if !isContainer(kv.Value) && kv.Value.Type() != ast.NullType {
			d.at[e.path] = startOf(kv.Value)
		}
		entries = append(entries, e)
	}
	return entries, true
}

func isContainer(n ast.Node) bool {
	return n.Type() == ast.MappingType || n.Type() == ast.MappingValueType || n.Type() == ast.SequenceType
}

// fields decodes entries into the fields of a struct.
func (d *decoder) fields(entries []entry, v reflect.Value) {
	byName := map[string]int{}
	var names []string
	for i := range v.NumField() {
		if name := fieldName(v.Type().Field(i)); name != "" {
			byName[name] = i
			names = append(names, name)
		}
	}
	for _, e := range entries {
		i, ok := byName[e.key]
		if !ok {
			what, hint := "unknown key", problem.DidYouMean(e.key, names, "valid here: "+strings.Join(names, ", "))
			if f, ok := v.Addr().Interface().(Former); ok && f.Former(e.key) != "" {
				what, hint = "this key no longer exists", f.Former(e.key)
			}
			d.add(e.at, e.path, what, hint)
			continue
		}
		d.value(e.node, v.Field(i), e.path)
	}
}

// fieldName returns the key of an exported field, "" if it has none: fields with the tag
// yaml:"-" follow from the rest of a plan, and are in its encoding alone.
func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" || f.Tag.Get("yaml") == "-" || !f.IsExported() {
		return ""
	}
	if name == "" {
		panic(fmt.Sprintf("study: field %s has no json tag", f.Name))
	}
	return name
}

// method decodes the mapping of a method: its name, and the options, which the
// method defines.
func (d *decoder) method(n ast.Node, m *Method, path string) {
	entries, ok := d.mapping(n, path)
	if !ok {
		return
	}
	var options []entry
	for _, e := range entries {
		if e.key == "name" {
			d.value(e.node, reflect.ValueOf(&m.Name).Elem(), e.path)
		} else {
			options = append(options, e)
		}
	}
	if m.Name == "" {
		return // reported by the checks
	}
	if m.Options, ok = newOptions(d.methods, m.Name); ok {
		d.fields(options, reflectValue(m.Options))
	}
}

// newOptions returns a method's default options. It panics if their type breaks
// the rules of [Methods].
func newOptions(methods Methods, name string) (any, bool) {
	options, ok := methods.Options(name)
	if !ok {
		return nil, false
	}
	checkDefaults(reflectValue(options))
	return options, true
}

func checkDefaults(v reflect.Value) {
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Pointer {
		checkDefaults(reflect.Zero(v.Type().Elem()))
	}
	if v.Kind() != reflect.Struct {
		return
	}
	for i := range v.NumField() {
		f, value := v.Type().Field(i), v.Field(i)
		if fieldName(f) == "" {
			continue
		}
		nilable := value.Kind() == reflect.Slice || value.Kind() == reflect.Pointer
		if optional := isOptional(f); optional && !value.IsZero() || !optional && nilable && value.IsNil() {
			panic(fmt.Sprintf("study: the tag omitempty of option %s does not fit its default", f.Name))
		}
		checkDefaults(value)
	}
}

// isOptional says whether a field is left out where it is empty.
func isOptional(f reflect.StructField) bool {
	return strings.HasSuffix(f.Tag.Get("json"), ",omitempty")
}

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
