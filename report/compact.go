package report

import (
	"fmt"
	"strings"
)

// looks makes the pictures of a page smaller: what elements look like, which a picture that
// stands alone says at each of them, becomes a class that all pictures of the page share.
type looks struct {
	class map[string]string // by the attributes that it stands for
	rules strings.Builder
}

func newLooks() *looks { return &looks{class: map[string]string{}} }

// lookUnit are the attributes that say how an element looks, with the unit that each has in a style.
var lookUnit = map[string]string{
	"fill": "", "fill-opacity": "", "fill-rule": "", "stroke": "", "stroke-width": "", "stroke-opacity": "",
	"stroke-dasharray": "", "stroke-linecap": "", "stroke-linejoin": "", "shape-rendering": "", "font-size": "px",
	"font-weight": "", "text-anchor": "", "pointer-events": "",
}

// compact returns a picture with classes. Pictures are those of package figure: elements without spaces
// around =, attributes in double quotes, and no < or > within these.
func (l *looks) compact(svg string) string {
	head := strings.Index(svg, "<rect") + 1 // the paper keeps its own
	var out, kept, rule strings.Builder
	out.WriteString(svg[:head])
	for rest := svg[head:]; ; {
		text, tag, opens := strings.Cut(rest, "<")
		out.WriteString(text)
		if !opens {
			return out.String()
		}
		end := strings.IndexByte(tag, '>')
		tag, rest = tag[:end], tag[end:]
		kind, attributes, _ := strings.Cut(tag, " ")
		kept.Reset()
		rule.Reset()
		for attributes != "" {
			name, value, ok := strings.Cut(attributes, `="`)
			if !ok { // the end of an element without content
				kept.WriteString(attributes)
				break
			}
			quote := strings.IndexByte(value, '"')
			if unit, looks := lookUnit[name]; looks {
				rule.WriteString(name + ":" + value[:quote] + unit + ";")
			} else {
				kept.WriteString(" " + attributes[:len(name)+2+quote+1])
			}
			attributes = strings.TrimPrefix(value[quote+1:], " ")
		}
		out.WriteString("<" + kind)
		if rule.Len() > 0 {
			out.WriteString(` class="` + l.named(rule.String()) + `"`)
		}
		out.WriteString(kept.String())
	}
}

// named returns the class of a look.
func (l *looks) named(rule string) string {
	name, ok := l.class[rule]
	if !ok {
		name = fmt.Sprintf("l%d", len(l.class)+1)
		l.class[rule] = name
		fmt.Fprintf(&l.rules, ".%s{%s}\n", name, rule)
	}
	return name
}
