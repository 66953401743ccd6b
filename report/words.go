package report

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"regexp"
	"slices"
	"strings"
)

// word is a technical term and what it means.
type word struct {
	term    string
	forms   string // a regular expression of how it is written, without regard to case
	meaning string
}

// glossary holds the terms of all methods. A page has those that occur on it.
var glossary = []word{
	{"R²", `R²`, "The share of the differences between subjects that a model accounts for: 0 % is none of them, " +
		"100 % all. It can be below 0, where a guess of the mean would have been nearer."},
	{"factor", `factors|factor \d+`, "A pattern: a set of measurements that tend to rise and fall together across subjects."},
	{"loading", `loadings?`, "How strongly a measurement takes part in a factor, and in which direction."},
	{"score", `scores?`, "How strongly a subject shows a factor: 0 is average, and 1 is one standard deviation above. In " +
		"a regression, how the log-likelihood of a person changes with the weights."},
	{"standard deviation", `standard deviations?`, "How widely values are spread: about two thirds of them lie " +
		"within one standard deviation of their mean, if they are normally distributed."},
	{"imputation", `imputations?|imputed?|imputing`, "To fill in values that were not measured with what a model " +
		"expects, and to say how far that is to be trusted."},
	{"interval", `intervals?`, "A range that holds the true value with the probability stated, such as 90 %, if the " +
		"model holds."},
	{"coverage", `coverage`, "How many of the values an interval really held. Intervals of 90 % should hold about " +
		"nine values of ten."},
	{"residual", `residuals?`, "What is left of a value when what the model expects is taken away."},
	{"log-likelihood", `log-likelihoods?`, "How probable what happened was under the model, as a logarithm: the " +
		"higher the better."},
	{"nats", `nats?`, "The unit of information and of logarithms of probabilities to the base e: one nat is a factor " +
		"of 2.72."},
	{"divergence", `(?:Kullback-Leibler )?divergences?`,
		"How much two distributions differ (Kullback-Leibler divergence). 0 means that they are the same; here, that " +
			"another update changed nothing."},
	{"posterior", `posteriors?`, "What is known after the data have been seen: which values are possible, and how " +
		"probable each of them is."},
	{"prior", `priors?`, "What was assumed before any data were seen."},
	{"effective sample size", `effective sample size`, "How many independent draws would describe the posterior as " +
		"precisely as those that were made. It speaks of computation, and not of how many subjects there are."},
	{"log-odds", `log-odds`, "The logarithm of the odds p/(1 − p). A change of 0.7 doubles the odds, and one of −0.7 " +
		"halves them."},
	{"odds ratio", `odds ratios?`, "By how much the odds of the outcome are multiplied. 1 means no difference."},
	{"ROC", `ROC|receiver operating characteristic`, "Receiver operating characteristic: for every threshold, how " +
		"many cases are found and how many controls are called cases by mistake."},
	{"AUC", `AUC`, "The probability that a case is given more than a control: 0.5 is chance, and 1 tells all of them " +
		"apart."},
	{"calibration", `calibrat(?:ion|ed)`, "Whether probabilities hold what they promise: of those who are given 30 " +
		"%, three of ten should have the outcome."},
	{"mixture", `mixtures?`, "A model of several groups, its components, each of which has its own mean and spread. " +
		"Nobody said before who belongs to which."},
	{"component", `components?`, "One group of a mixture."},
	{"synthetic rows", `synthetic rows?`, "Rows that were drawn from a model, and belong to no person."},
	{"differential privacy", `differential privacy`, "A promise that what is released would look almost the same " +
		"without any single person. Noise of a known size keeps it."},
	{"ε", `ε`, "Epsilon, how much what was released may depend on one person: the smaller, the better protected. " +
		"Somebody's odds of guessing right grow by a factor of e^ε at most."},
	{"δ", `δ`, "Delta, a small probability with which the promise of ε may fail."},
	{"add-remove", `add-remove`, "What is compared for the promise of privacy: the data with a person and without " +
		"that person."},
	{"replace-one", `replace-one`, "What is compared for the promise of privacy: the data with a person's values and " +
		"with any other values in their place."},
	{"privacy budget", `privacy budgets?`, "The total of ε and δ that was promised. Every release spends some of it."},
	{"clipped", `clip(?:ped|ping)`, "Cut off at a bound that was fixed before, so that no single person can change a " +
		"sum by more than that."},
	{"Heywood case", `Heywood cases?`, "A feature that the model takes as measured almost without error, usually " +
		"because a factor rests on it alone."},
	{"scaled", `scaled units?`, "Each feature divided by its spread, so that features of different units can be " +
		"compared."},
}

var (
	anyWord = regexp.MustCompile(`(?i)` + formsOf(glossary))
	oneWord = wordPatterns(glossary)
)

func formsOf(words []word) string {
	longest := slices.SortedStableFunc(slices.Values(words), func(a, b word) int {
		return cmp.Compare(len(b.forms), len(a.forms))
	})
	var forms []string
	for _, w := range longest {
		forms = append(forms, w.forms)
	}
	return strings.Join(forms, "|")
}

func wordPatterns(words []word) []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, w := range words {
		all = append(all, regexp.MustCompile(`(?i)^(?:`+w.forms+`)$`))
	}
	return all
}

// words links terms to their meanings: each once in a section, and remembers which the
// page has.
type words struct {
	used  map[int]bool
	fresh map[int]bool // those linked in this section
}

func newWords() *words { return &words{used: map[int]bool{}, fresh: map[int]bool{}} }

// section begins a section: terms are linked again.
func (w *words) section() { clear(w.fresh) }

// text escapes a text and links the terms in it.
func (w *words) text(s string) template.HTML {
	var b strings.Builder
	at := 0
	for _, m := range anyWord.FindAllStringIndex(s, -1) {
		if letterBefore(s, m[0]) || letterAfter(s, m[1]) {
			continue
		}
		i := slices.IndexFunc(oneWord, func(r *regexp.Regexp) bool { return r.MatchString(s[m[0]:m[1]]) })
		if i < 0 || w.fresh[i] {
			continue
		}
		w.used[i], w.fresh[i] = true, true
		fmt.Fprintf(&b, `%s<a class="term" href="#word-%d" title="%s">%s</a>`, html.EscapeString(s[at:m[0]]), i+1,
			html.EscapeString(glossary[i].meaning), html.EscapeString(s[m[0]:m[1]]))
		at = m[1]
	}
	b.WriteString(html.EscapeString(s[at:]))
	return template.HTML(b.String()) // every part was escaped
}

// texts is text for every paragraph.
func (w *words) texts(list []string) []template.HTML {
	var all []template.HTML
	for _, s := range list {
		all = append(all, w.text(s))
	}
	return all
}

// also returns links to the terms of some texts that the section has not linked yet, such
// as those inside a picture.
func (w *words) also(list []string) []template.HTML {
	var all []template.HTML
	for _, s := range list {
		for _, m := range anyWord.FindAllStringIndex(s, -1) {
			if letterBefore(s, m[0]) || letterAfter(s, m[1]) {
				continue
			}
			if link := w.text(s[m[0]:m[1]]); strings.Contains(string(link), "<a ") {
				all = append(all, link)
			}
		}
	}
	return all
}

// list is the glossary of the page, by term.
func (w *words) list() (all []wordView) {
	for i, x := range glossary {
		if w.used[i] {
			all = append(all, wordView{i + 1, x.term, x.meaning})
		}
	}
	slices.SortStableFunc(all, func(a, b wordView) int {
		return cmp.Compare(strings.ToLower(a.Term), strings.ToLower(b.Term))
	})
	return all
}

type wordView struct {
	Number        int
	Term, Meaning string
}

func letterBefore(s string, at int) bool {
	return at > 0 && !strings.ContainsRune(" (,;:.“\"'\n\u00a0/−-", rune(s[at-1])) && s[at-1] < 0x80
}

func letterAfter(s string, at int) bool {
	if at+1 < len(s) && s[at] == '.' && s[at+1] != ' ' && s[at+1] != '\n' {
		return true // a file's name
	}
	return at < len(s) && (s[at] >= 'a' && s[at] <= 'z' || s[at] >= 'A' && s[at] <= 'Z' || s[at] >= '0' &&
		s[at] <= '9' || s[at] == '_' || s[at] == '-')
}
