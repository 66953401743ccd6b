package study

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"parley/problem"
)

// maxDepth limits nesting within one line of YAML.
const maxDepth = 16

// decoder decodes YAML into structs, by their json tags. Unlike the decoders of
// YAML libraries it goes on after a problem, so that all are reported together,
// and it remembers where every value stood, for the checks that follow.
type decoder struct {
	file     string
	methods  Methods
	problems problem.List
	at       map[string]position // by path, such as views[1].features[0].range
	failed   map[string]bool     // paths where nothing could be decoded
}

func newDecoder(file string, methods Methods) *decoder {
	return &decoder{file: file, methods: methods, at: map[string]position{}, failed: map[string]bool{}}
}

type position struct{ line, column int }

func positionOf(tk *token.Token) position { return position{tk.Position.Line, tk.Position.Column} }

func reflectValue(pointer any) reflect.Value { return reflect.ValueOf(pointer).Elem() }

func (d *decoder) add(at position, path, what, hint string) {
	d.problems.Add(problem.Problem{File: d.file, Line: at.line, Column: at.column, Where: keyOf(path), What: what, Hint: hint})
}

// fail reports a value that cannot be decoded.
func (d *decoder) fail(path, what, hint string) {
	d.report(path, what, hint)
	d.failed[path] = true
}

// report is add at the place of a path, or of the nearest key around it. It is
// silent where nothing could be decoded, since that has been reported.
func (d *decoder) report(path, what, hint string) {
	at := position{1, 1}
	for around, found := path, false; ; around = parent(around) {
		if d.failed[around] {
			return
		}
		if here, ok := d.at[around]; ok && !found {
			at, found = here, true
		}
		if around == "" {
			break
		}
	}
	d.add(at, path, what, hint)
}

// parent returns the path of what holds the value at the path.
func parent(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

// has says whether something stood at the path, right or wrong.
func (d *decoder) has(path string) bool {
	_, ok := d.at[path]
	return ok
}

func (d *decoder) missing(path string) bool { return !d.has(path) }

// keyOf drops the indices of a path.
func keyOf(path string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(path, "[") {
		if i := strings.IndexByte(part, ']'); i >= 0 {
			part = part[i+1:]
		}
		b.WriteString(part)
	}
	return b.String()
}

// parse returns the root of the document, or nil after a problem.
func (d *decoder) parse(b []byte) ast.Node {
	start := position{1, 1}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if len(b) > MaxBytes {
		d.add(position{}, "", fmt.Sprintf("larger than %d bytes", MaxBytes), "a plan holds names and settings, never data")
		return nil
	}
	for i, line := range bytes.Split(b, []byte("\n")) {
		if !utf8.Valid(line) {
			d.add(position{i + 1, 0}, "", "not UTF-8 text", "save the file in the encoding UTF-8")
			return nil
		}
	}
	tokens := lexer.Tokenize(string(b))
	depth, entries := 0, 0
	for _, tk := range tokens {
		switch tk.Type {
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType, token.DirectiveType:
			d.add(positionOf(tk), "", fmt.Sprintf("anchors, aliases, merge keys, tags and directives are not used in plans (%s)", tk.Value), "write the value out")
			return nil
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		}
		if tk.Type == token.SequenceEntryType || tk.Type == token.MappingKeyType {
			entries++
		} else {
			entries = 0
		}
		if depth+entries > maxDepth {
			d.add(positionOf(tk), "", "nested too deeply", "")
			return nil
		}
	}
	f, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.syntax(err)
		return nil
	}
	if len(f.Docs) == 0 || f.Docs[0].Body == nil {
		d.add(start, "", "the plan is empty", "a plan begins with: parley: 1")
		return nil
	}
	if len(f.Docs) > 1 {
		at := start
		if tk := f.Docs[1].Start; tk != nil {
			at = positionOf(tk)
		}
		d.add(at, "", "a second document", "a file holds one plan")
		return nil
	}
	return f.Docs[0].Body
}

func (d *decoder) syntax(err error) {
	at, what := position{1, 1}, err.Error()
	if e, ok := err.(yaml.Error); ok {
		what = e.GetMessage()
		if tk := e.GetToken(); tk != nil {
			at = positionOf(tk)
		}
	}
	d.add(at, "", "not YAML: "+what, "")
}

// scalarForm is implemented by structs that may be written as one word.
type scalarForm interface{ fromScalar(s string) }

func (f *Feature) fromScalar(s string) { f.Name = s }

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
			f.fromScalar(s)
			return
		}
	}
	switch v.Kind() {
	case reflect.Struct:
		if m, ok := d.mapping(n, path); ok {
			d.fields(m, v, path)
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
func (d *decoder) fields(entries []entry, v reflect.Value, path string) {
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
			d.add(e.at, e.path, "unknown key", didYouMean(e.key, names, "valid here: "+strings.Join(names, ", ")))
			continue
		}
		d.value(e.node, v.Field(i), e.path)
	}
}

// fieldName returns the key of an exported field, "" if it has none.
func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" || !f.IsExported() {
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
		d.fields(options, reflectValue(m.Options), path)
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

func startOf(n ast.Node) position {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return positionOf(m.Values[0].Key.GetToken())
	}
	if kv, ok := n.(*ast.MappingValueNode); ok {
		return positionOf(kv.Key.GetToken())
	}
	return positionOf(n.GetToken())
}

func text(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	return "", false
}

var real = regexp.MustCompile(`^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$`)

// scalar sets v to the value of the node, if it is of v's kind and in its range.
func scalar(n ast.Node, v reflect.Value) bool {
	literal := strings.ReplaceAll(n.GetToken().Value, "_", "")
	decimal := n.GetToken().Type == token.IntegerType
	switch v.Kind() {
	case reflect.String:
		s, ok := text(n)
		v.SetString(s)
		return ok
	case reflect.Bool:
		b, ok := n.(*ast.BoolNode)
		if ok {
			v.SetBool(b.Value)
		}
		return ok
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(literal, 10, v.Type().Bits())
		if err == nil && decimal {
			v.SetInt(i)
		}
		return err == nil && decimal
	case reflect.Uint64:
		u, err := strconv.ParseUint(literal, 10, 64)
		if err == nil && decimal {
			v.SetUint(u)
		}
		return err == nil && decimal
	case reflect.Float64:
		// The library takes 1e+3 for text.
		_, quoted := n.(*ast.StringNode)
		quoted = quoted && n.GetToken().Type != token.StringType
		f, err := strconv.ParseFloat(literal, 64) // an error beyond the range of float64
		ok := err == nil && !quoted && real.MatchString(literal)
		if ok {
			v.SetFloat(f)
		}
		return ok
	}
	panic(fmt.Sprintf("study: a plan cannot hold a %v", v.Type()))
}

func expected(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Uint64:
		return "a whole number from 0 to 2⁶⁴−1"
	case reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

func describe(n ast.Node) string {
	switch n.Type() {
	case ast.MappingType, ast.MappingValueType:
		return "keys with values"
	case ast.SequenceType:
		return "a list"
	}
	if s, ok := text(n); ok {
		return fmt.Sprintf("%.42q", s)
	}
	return n.GetToken().Value
}

func quoteHint(n ast.Node, v reflect.Value) string {
	if v.Kind() == reflect.String && !isContainer(n) {
		return fmt.Sprintf("to mean the text, write it in quotes: %q", n.GetToken().Value)
	}
	return ""
}
