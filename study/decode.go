package study

import (
	"fmt"
	"reflect"

	"github.com/goccy/go-yaml/ast"

	"parley/internal/document"
)

// plans are decoded with the options of these methods.
func plans(methods Methods) document.Document {
	return document.Document{Kind: "plan", Plural: "plans", First: "parley",
		Special: func(d *document.Decoder, n ast.Node, v any, path string) bool {
			m, ok := v.(*Method)
			if ok {
				decodeMethod(d, methods, n, m, path)
			}
			return ok
		}}
}

func reflectValue(pointer any) reflect.Value { return reflect.ValueOf(pointer).Elem() }

// FromScalar is a feature that is written as its name.
func (f *Feature) FromScalar(s string) { f.Name = s }

// decodeMethod decodes the mapping of a method: its name, and the options, which the
// method defines.
func decodeMethod(d *document.Decoder, methods Methods, n ast.Node, m *Method, path string) {
	entries, ok := d.Entries(n, path)
	if !ok {
		return
	}
	var options []document.Entry
	for _, e := range entries {
		if e.Key == "name" {
			d.Value(e.Node, &m.Name, e.Path)
		} else {
			options = append(options, e)
		}
	}
	if m.Name == "" {
		return // reported by the checks
	}
	if m.Options, ok = newOptions(methods, m.Name); ok {
		d.Fields(options, m.Options)
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
		if document.Key(f) == "" {
			continue
		}
		nilable := value.Kind() == reflect.Slice || value.Kind() == reflect.Pointer
		if optional := document.Optional(f); optional && !value.IsZero() || !optional && nilable && value.IsNil() {
			panic(fmt.Sprintf("study: the tag omitempty of option %s does not fit its default", f.Name))
		}
		checkDefaults(value)
	}
}
