package document

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

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

// IsReal says whether a text is a number as a document has it.
func IsReal(s string) bool { return real.MatchString(s) }

// scalar sets v to the value of the node, if it is of v's kind and in its range.
func scalar(n ast.Node, v reflect.Value) bool {
	literal := strings.ReplaceAll(n.GetToken().Value, "_", "")
	decimal := n.GetToken().Type == token.IntegerType
	switch v.Kind() {
	case reflect.String:
		if _, ok := v.Addr().Interface().(*Cell); ok && !isContainer(n) {
			v.SetString(n.GetToken().Value) // a number or a word, as it stands in a table
			return true
		}
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
		if w, ok := v.Addr().Interface().(wordForm); ok {
			if s, ok := text(n); ok {
				return w.FromWord(s)
			}
		}
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
		ok := err == nil && !quoted && IsReal(literal)
		if ok {
			v.SetFloat(f)
		}
		return ok
	}
	panic(fmt.Sprintf("document: it cannot hold a %v", v.Type()))
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
