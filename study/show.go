package study

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
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

// yamlWriter writes the few forms of YAML that plans need. The library's
// encoder does not quote some texts that it reads back differently.
type yamlWriter struct{ strings.Builder }

// block writes the fields of a struct, one below the other.
func (w *yamlWriter) block(v reflect.Value, indent string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name := fieldName(f)
		if name == "" || strings.HasSuffix(f.Tag.Get("json"), ",omitempty") && isEmpty(v.Field(i)) {
			continue
		}
		w.field(name, v.Field(i), indent)
	}
}

func isEmpty(v reflect.Value) bool {
	return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
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
	case v.Kind() == reflect.Slice && v.Len() > 0 && v.Type().Elem().Kind() == reflect.Struct:
		w.WriteString("\n")
		for i := range v.Len() {
			w.item(v.Index(i), indent+"  ")
		}
	default:
		w.WriteString(" " + flow(v) + "\n")
	}
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
	if f, ok := v.Interface().(Feature); ok && f.Kind == Number && f.Range == nil && f.Unit == "" {
		return flow(reflect.ValueOf(f.Name))
	}
	var parts []string
	switch v.Kind() {
	case reflect.Pointer:
		return flow(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			var w yamlWriter
			f := v.Type().Field(i)
			if strings.HasSuffix(f.Tag.Get("json"), ",omitempty") && isEmpty(v.Field(i)) {
				continue
			}
			w.WriteString(fieldName(f) + ": " + flow(v.Field(i)))
			parts = append(parts, w.String())
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			parts = append(parts, flow(v.Index(i)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.String:
		return quote(v.String())
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

// quote returns printable text, or lines of it, so that YAML reads it as text.
func quote(s string) string {
	if harmless.MatchString(s) && !reserved.MatchString(s) {
		return s
	}
	return `"` + escapes.Replace(s) + `"`
}
