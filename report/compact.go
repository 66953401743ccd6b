package report

import (
	"fmt"
	"regexp"
	"strings"
)

// looks makes the pictures of a page smaller: what elements look like, which a picture that
// stands alone says at each of them, becomes a class that all pictures of the page share.
type looks struct {
	class map[string]string // by the attributes that it stands for
	rules strings.Builder
}

func newLooks() *looks { return &looks{class: map[string]string{}} }

var (
	drawnTag = regexp.MustCompile(`<(?:path|rect|text|g|ellipse)( [^>]*?)/?>`)
	lookAttr = regexp.MustCompile(` (fill|fill-opacity|fill-rule|stroke|stroke-width|stroke-opacity|stroke-dasharray|stroke-linecap|stroke-linejoin|shape-rendering|font-size|font-weight|text-anchor|pointer-events)="([^"]*)"`)
)

// compact returns a picture with classes.
func (l *looks) compact(svg string) string {
	head := strings.Index(svg, "<rect") + 1 // the paper keeps its own
	return svg[:head] + drawnTag.ReplaceAllStringFunc(svg[head:], func(tag string) string {
		found := lookAttr.FindAllStringSubmatch(tag, -1)
		if len(found) == 0 {
			return tag
		}
		var rule strings.Builder
		for _, m := range found {
			unit := ""
			if m[1] == "font-size" {
				unit = "px"
			}
			fmt.Fprintf(&rule, "%s:%s%s;", m[1], m[2], unit)
		}
		name, ok := l.class[rule.String()]
		if !ok {
			name = fmt.Sprintf("l%d", len(l.class)+1)
			l.class[rule.String()] = name
			fmt.Fprintf(&l.rules, ".%s{%s}\n", name, rule.String())
		}
		kind, _, _ := strings.Cut(tag, " ")
		return kind + ` class="` + name + `"` + strings.TrimPrefix(lookAttr.ReplaceAllString(tag, ""), kind)
	})
}
