package study

import (
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"parley/internal/document"
)

// YAML returns the effective plan, every default filled in, as YAML that reads
// back to the same digest. Local is left out.
func (p *Plan) YAML() ([]byte, error) {
	digest, err := p.Digest()
	if err != nil {
		return nil, err
	}
	shared := *p
	shared.Local = nil
	var w yamlWriter
	fmt.Fprintf(&w, "# The effective plan; digest %s\n", digest)
	w.block(reflect.ValueOf(shared), "")
	return []byte(w.String()), nil
}

// MarshalJSON writes the method as it stands in a plan: its name among its options.
func (m Method) MarshalJSON() ([]byte, error) {
	fields := map[string]any{"name": m.Name}
	for name, value := range written(reflectValue(m.Options)) {
		fields[name] = value.Interface()
	}
	return json.Marshal(fields)
}

// yamlWriter writes the few forms of YAML that plans need. The library's
// encoder does not quote some texts that it reads back differently.
type yamlWriter struct{ strings.Builder }

// block writes the fields of a struct, one below the other.
func (w *yamlWriter) block(v reflect.Value, indent string) {
	for name, value := range written(v) {
		w.field(name, value, indent)
	}
}

// written yields the fields of a struct that are written, with their keys.
func written(v reflect.Value) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		for i := range v.NumField() {
			f, value := v.Type().Field(i), v.Field(i)
			empty := value.IsZero() || value.Kind() == reflect.Slice && value.Len() == 0
			if name := document.Key(f); name != "" && !(document.Optional(f) && empty) && !yield(name, value) {
				return
			}
		}
	}
}

func (w *yamlWriter) field(name string, v reflect.Value, indent string) {
	w.WriteString(indent + name + ":")
	if m, ok := v.Interface().(Method); ok {
		w.WriteString("\n" + indent + "  name: " + flow(reflect.ValueOf(m.Name)) + "\n")
		w.block(reflectValue(m.Options), indent+"  ")
		return
	}
	switch {
	case v.Kind() == reflect.Struct:
		w.WriteString("\n")
		w.block(v, indent+"  ")
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct && !allPlain(v):
		w.WriteString("\n")
		for i := range v.Len() {
			w.item(v.Index(i), indent+"  ")
		}
	case v.Kind() == reflect.Slice:
		w.list(v, indent+"  ", len(indent)+len(name)+3)
	default:
		w.WriteString(" " + flow(v) + "\n")
	}
}

// list writes a list of short entries, in as many lines as it takes; used says
// how much of the first is taken.
func (w *yamlWriter) list(v reflect.Value, indent string, used int) {
	const width = 100
	w.WriteString(" [")
	for i := range v.Len() {
		part := flow(v.Index(i))
		if i < v.Len()-1 {
			part += ","
		}
		switch {
		case i > 0 && used+len(part) >= width:
			w.WriteString("\n" + indent)
			used = len(indent)
		case i > 0:
			w.WriteString(" ")
			used++
		}
		w.WriteString(part)
		used += len(part)
	}
	w.WriteString("]\n")
}

// isPlain says whether a value is a feature that its name describes in full.
func isPlain(v reflect.Value) bool {
	f, ok := v.Interface().(Feature)
	return ok && f.Kind == Number && f.Range == nil && f.Unit == "" && len(f.Missing) == 0
}

func allPlain(v reflect.Value) bool {
	for i := range v.Len() {
		if !isPlain(v.Index(i)) {
			return false
		}
	}
	return true
}

// item writes an entry of a list: in one line if nothing in it is a list of
// structs, else its fields one below the other after a dash.
func (w *yamlWriter) item(v reflect.Value, indent string) {
	if _, ok := v.Interface().(View); !ok {
		w.WriteString(indent + "- " + flow(v) + "\n")
		return
	}
	var inner yamlWriter
	inner.block(v, indent+"  ")
	w.WriteString(indent + "- " + strings.TrimPrefix(inner.String(), indent+"  "))
}

// flow returns a value in one line.
func flow(v reflect.Value) string {
	if isPlain(v) {
		return Quote(v.Interface().(Feature).Name)
	}
	var parts []string
	switch v.Kind() {
	case reflect.Pointer:
		return flow(v.Elem())
	case reflect.Struct:
		for name, value := range written(v) {
			parts = append(parts, name+": "+flow(value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			parts = append(parts, flow(v.Index(i)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.String:
		if _, ok := v.Interface().(Code); ok && document.IsReal(v.String()) {
			return v.String() // as people write it
		}
		return Quote(v.String())
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	}
	return fmt.Sprint(v.Interface())
}

var (
	harmless = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_/-]*$`)
	reserved = regexp.MustCompile(`(?i)^(true|false|null|yes|no|on|off|y|n|nan|inf)$`)
	escapes  = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
)

// Quote returns printable text, or lines of it, so that YAML reads it as text.
func Quote(s string) string {
	if harmless.MatchString(s) && !reserved.MatchString(s) {
		return s
	}
	return `"` + escapes.Replace(s) + `"`
}
