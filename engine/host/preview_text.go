package host

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/figure"
	"parley/privacy"
	"parley/privacy/ledger"
	"parley/study"
)

// listed is how many names are written out.
const listed = 60

// Text writes the preview for a data manager. What others wrote is reduced to
// printable text.
func (p *Preview) Text(w io.Writer) error {
	t := &page{}
	who := ""
	if p.Coordinator != "" {
		who = ", coordinated by " + p.Coordinator
	}
	t.line(0, fmt.Sprintf("Study %s (%.12s)%s", p.Name, p.Study, who))
	t.line(1, p.Question)
	t.line(1, fmt.Sprintf("%s: %s. This site is %s. The study ends if fewer than %d of them are left.",
		figure.Plural(len(p.Sites), "site"), names(p.Sites), p.Site, p.Quorum))

	t.head("What it computes")
	t.line(1, p.Describes)
	t.line(1, fmt.Sprintf("Method %s, revision %d.", p.Method, p.Revision))

	t.head("What it reads here")
	if len(p.Problems) == 0 {
		t.line(1, figure.Plural(p.Subjects, "subject")+", and of each:")
	}
	for _, v := range p.Views {
		t.item(p.view(v))
	}
	if len(p.Columns) > 0 {
		t.item("columns of the subjects table: " + names(p.Columns))
	}

	t.head("What leaves this site")
	repeats := false
	for _, l := range p.Requests {
		if repeats = repeats || l.Again; !l.Again {
			t.request(l)
		}
	}
	if repeats {
		t.line(1, "One of these sums may leave once more, with other noise, if an opener leaves; the total below "+
			"has room for that.")
	}
	t.line(1, fmt.Sprintf("In total at most %s, about %s.", figure.Plural(p.Numbers, "number"),
		size(float64(p.Bytes))))

	if len(p.Secure) > 0 {
		t.head("Who could see this site's own sums")
		for _, line := range p.Secure {
			t.line(1, line)
		}
		if len(p.Keys) > 0 {
			t.line(1, "Keys that the plan names, to be compared with each site by another way than this program: "+
				strings.Join(p.Keys, ", ")+".")
		}
	}

	t.head("What it costs")
	for _, line := range p.Promise {
		t.line(1, sentence(line))
	}
	for _, line := range p.Admission.Lines() {
		t.line(1, sentence(line))
	}
	t.line(1, p.past())
	if p.Admission.Begun {
		t.line(1, "This study has begun here: charges of it are in the ledger.")
	}

	t.list("To know", p.Notes)
	t.list("What is wrong with the data", p.Problems)

	t.head("Whether this site would take part")
	if p.TakesPart {
		t.line(1, "This site would take part.")
	} else {
		t.line(1, "This site would not take part:")
		if len(p.Problems) > 0 {
			t.item("data: they cannot be used as they are (see above), so that subjects have not been counted")
		}
		for _, r := range p.Admission.Problems("") {
			r.Where = strings.TrimPrefix(strings.TrimPrefix(r.Where, "site "+p.Site), ": ")
			t.item(r.Error())
		}
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

// view says what of a view is read.
func (p *Preview) view(v previewView) string {
	var features []string
	for _, f := range v.Features {
		text := f.Name
		switch {
		case f.Kind == study.Category:
			text += fmt.Sprintf(" (%d levels)", len(f.Levels))
		case f.Unit != "":
			text += " (" + f.Unit + ")"
		}
		features = append(features, text)
	}
	has := ""
	switch {
	case len(p.Problems) > 0:
	case v.Subjects == 0:
		has = ", which this site lacks"
	case v.Subjects < p.Subjects:
		has = fmt.Sprintf(", which %d of the subjects have", v.Subjects)
	}
	return fmt.Sprintf("view %s%s: %s: %s", v.Name, has, figure.Plural(len(v.Features), "feature"), names(features))
}

// request says what leaves for one kind of task.
func (t *page) request(l privacy.Listed) {
	n := ledger.NumbersOf(l.Request)
	many := fmt.Sprintf("at most %s (%s)", figure.Plural(n, "number"), size(float64(ledger.BytesOf(l.Request))))
	often := "at most once: " + many
	if l.Times != 1 {
		often = fmt.Sprintf("at most %d times: %s each time", l.Times, many)
	}
	how := "Exact numbers leave: they are not protected by noise."
	switch {
	case l.Request.Opens > 0:
		how = "They are masks, and tell nothing of this site's rows."
	case l.Request.Protection == privacy.Differential && l.Request.Masked:
		how = "They are masked; their total over the sites has noise."
	case l.Request.Masked:
		how = "They are masked; their total over the sites is exact."
	case l.Request.Protection == privacy.Differential:
		how = "They are protected by noise."
	}
	t.line(1, fmt.Sprintf("%s, %s. %s", l.Kind, often, how))
	for _, c := range l.Request.Contents {
		t.item(fmt.Sprintf("%s: %s", c.What, figure.Plural(c.Values, "number")))
	}
	for _, s := range l.Request.Sums {
		t.item(sum(s))
	}
}

// sum says what is summed, and with what noise.
func sum(s privacy.Sum) string {
	of := "vectors of one " + string(s.Unit) + " each"
	if s.Form == privacy.Moments {
		of = "products of each " + string(s.Unit) + "'s vector with itself"
	}
	blocks := fmt.Sprintf("of length %d", s.Blocks[0])
	if n := len(s.Blocks); n > 1 {
		low, high := s.Blocks[0], s.Blocks[0]
		for _, b := range s.Blocks {
			low, high = min(low, b), max(high, b)
		}
		blocks = fmt.Sprintf("in %d blocks of length %d", n, low)
		if low < high {
			blocks = fmt.Sprintf("in %d blocks of lengths %d to %d", n, low, high)
		}
	}
	text := fmt.Sprintf("noised sum %q: %s, %s, clipped to the bound %.4g: %s; noise: %s", s.Name, of, blocks, s.Bound,
		figure.Plural(s.Entries(), "number"), ledger.NoiseOf(s))
	if n := s.Mechanism.Count; n > 1 {
		text += fmt.Sprintf("; made %d times", n)
	}
	if s.Kept {
		text += "; it stays at the site, and what follows from it leaves"
	}
	return text
}

// past says what the ledger holds.
func (p *Preview) past() string {
	if p.Charges == 0 {
		return "The ledger has no charge yet."
	}
	text := fmt.Sprintf("The ledger has %s so far", figure.Plural(p.Charges, "charge"))
	for i, l := range p.Spent {
		text += fmt.Sprintf("%s ε %s at δ %s (%s)", []string{", whose noised sums cost one subject", ","}[min(i, 1)],
			ledger.Spent(l.Epsilon), strconv.FormatFloat(l.Delta, 'g', -1, 64), l.Adjacency)
	}
	return text + "."
}

// page is text in the making.
type page struct{ b strings.Builder }

const width = 100 // columns, where a word allows it

// line writes a paragraph, indented by so many steps; nothing if it is empty.
func (t *page) line(indent int, text string) { t.wrap(strings.Repeat("  ", indent), "", text) }

// item writes an entry of a list, whose own further lines are hints.
func (t *page) item(text string) {
	for i, line := range strings.Split(text, "\n") {
		mark := "- "
		if i > 0 {
			mark = "  "
		}
		t.wrap("    ", mark, line)
	}
}

func (t *page) head(text string) {
	t.b.WriteString("\n")
	t.line(0, text)
}

// list writes a section; nothing if it is empty.
func (t *page) list(title string, items []string) {
	if len(items) == 0 {
		return
	}
	t.head(title)
	for _, i := range items {
		t.item(i)
	}
}

// wrap breaks text between words. Lines after the first are indented below its mark.
func (t *page) wrap(indent, mark, text string) {
	at := 0
	for i, word := range strings.Fields(strings.Map(visible, text)) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
			t.b.WriteString(indent + mark)
			at = len(indent + mark)
		case at+1+n > width:
			t.b.WriteString("\n" + indent + strings.Repeat(" ", len(mark)))
			at = len(indent + mark)
		default:
			t.b.WriteString(" ")
			at++
		}
		t.b.WriteString(word)
		at += n
	}
	if at > 0 {
		t.b.WriteString("\n")
	}
}

// visible replaces what would control a terminal.
func visible(r rune) rune {
	if !unicode.IsPrint(r) {
		return ' '
	}
	return r
}

// names lists the first names.
func names(list []string) string {
	if more := len(list) - listed; more > 0 {
		return strings.Join(list[:listed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(list, ", ")
}

// size writes a number of bytes.
func size(bytes float64) string {
	switch {
	case bytes < 1e3:
		return fmt.Sprintf("%.0f bytes", bytes)
	case bytes < 1e6:
		return fmt.Sprintf("%s kB", strconv.FormatFloat(math.Ceil(bytes/100)/10, 'f', -1, 64))
	}
	return fmt.Sprintf("%s MB", strconv.FormatFloat(math.Ceil(bytes/1e5)/10, 'f', -1, 64))
}

// sentence makes one of words that begin small.
func sentence(text string) string {
	r, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(r)) + text[n:] + "."
}
