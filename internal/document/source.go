// Package document decodes YAML files that people write: plans, policies, protocols and the mappings of sites. It is
// strict, and says of everything that is wrong where it stands and what would be right.
package document

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"parley/problem"
)

// MaxBytes limits a document.
const MaxBytes = 1 << 20

// maxDepth limits nesting within one line of YAML.
const maxDepth = 16

// Decoder decodes YAML into structs, by their json tags. Unlike the decoders of
// YAML libraries it goes on after a problem, so that all are reported together,
// and it remembers where every value stood, for the checks that follow.
type Decoder struct {
	file     string
	document Document
	special  func(d *Decoder, n ast.Node, v any, path string) bool
	problems problem.List
	at       map[string]position // by path, such as views[1].features[0].range
	failed   map[string]bool     // paths where nothing could be decoded
}

type position struct{ line, column int }

func positionOf(tk *token.Token) position { return position{tk.Position.Line, tk.Position.Column} }

func (d *Decoder) add(at position, path, what, hint string) {
	d.problems.Add(problem.Problem{File: d.file, Line: at.line, Column: at.column, Where: keyOf(path),
		What: what, Hint: hint})
}

// fail reports a value that cannot be decoded.
func (d *Decoder) fail(path, what, hint string) {
	d.report(path, what, hint)
	d.failed[path] = true
}

// report is add at the place of a path, or of the nearest key around it. It is
// silent where nothing could be decoded, since that has been reported.
func (d *Decoder) report(path, what, hint string) {
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
func (d *Decoder) has(path string) bool {
	_, ok := d.at[path]
	return ok
}

func (d *Decoder) missing(path string) bool { return !d.has(path) }

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
func (d *Decoder) parse(b []byte) ast.Node {
	start := position{1, 1}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if len(b) > MaxBytes {
		d.add(position{}, "", fmt.Sprintf("larger than %d bytes", MaxBytes), "a "+d.document.Kind+
			" holds names and settings, never data")
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
			d.add(positionOf(tk), "", fmt.Sprintf("anchors, aliases, merge keys, tags and directives are not used in "+
				"%s (%s)", d.document.Plural, tk.Value), "write the value out")
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
		d.add(start, "", fmt.Sprintf("the %s is empty", d.document.Kind),
			fmt.Sprintf("a %s begins with: %s: 1", d.document.Kind, d.document.First))
		return nil
	}
	if len(f.Docs) > 1 {
		at := start
		if tk := f.Docs[1].Start; tk != nil {
			at = positionOf(tk)
		}
		d.add(at, "", "a second document", "a file holds one "+d.document.Kind)
		return nil
	}
	return f.Docs[0].Body
}

func (d *Decoder) syntax(err error) {
	at, what := position{1, 1}, err.Error()
	if e, ok := err.(yaml.Error); ok {
		what = e.GetMessage()
		if tk := e.GetToken(); tk != nil {
			at = positionOf(tk)
		}
	}
	hint := "look at this line and the one before: indentation, a space after each colon, brackets and quotes that " +
		"are closed"
	if strings.Contains(what, "'\t'") {
		what, hint = "a tab cannot indent a line", "indent with spaces, two for each level"
	}
	d.add(at, "", "not YAML: "+what, hint)
}
