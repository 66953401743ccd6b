package problem

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Key is what all spellings of a name, a level or an id have in common: the only comparison of spellings. Letters of
// other widths and forms are the usual ones (Unicode's NFKC), Cyrillic and Greek ones that look like Latin ones are
// these, capitals are small, and characters that show nothing are not there. Spaces, underscores, dots and hyphens
// between words count for nothing; between digits they do, and so does a sign: 1.5 is not 15, and A− not A.
func Key(s string) string {
	var all []rune
	for _, r := range looks.Replace(strings.ToLower(norm.NFKC.String(s))) {
		if !unseen(r) {
			all = append(all, r)
		}
	}
	var b strings.Builder
	for i, r := range all {
		if isSeparator(r) && !counts(all, i) {
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// unseen says whether a character shows nothing: controls but for space, formats such as U+200B and U+00AD, and what
// only chooses the form of the character before.
func unseen(r rune) bool {
	return !unicode.IsSpace(r) && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point)
}

func isSeparator(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("_.,-/", r) }

// counts says whether a separator is part of a number, or a sign.
func counts(all []rune, i int) bool {
	before, after := rune(0), rune(0)
	if i > 0 {
		before = all[i-1]
	}
	if i+1 < len(all) {
		after = all[i+1]
	}
	if unicode.IsDigit(before) && unicode.IsDigit(after) {
		return !unicode.IsSpace(all[i])
	}
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	return all[i] == '-' && word(before) != word(after)
}

// looks gives small letters that look like Latin ones, or whose capitals do, the place of these, and dashes and
// quotes that of the keyboard's.
var looks = func() *strings.Replacer {
	var pairs []string
	for _, of := range [][2]string{
		{"авекмнорстухіјѕԁһӏԛԝ", "abekmhopctyxijsdhlqw"}, {"αβεζηικμνορςστυχϲϳ", "abezhikunopsstyxcj"},
		{"‐‑‒–—―−", "-------"}, {"’‘ʼ`´′", "''''''"}, {"“”„″", `""""`},
	} {
		to := []rune(of[1])
		for i, r := range []rune(of[0]) {
			pairs = append(pairs, string(r), string(to[i]))
		}
	}
	return strings.NewReplacer(append(pairs, "ß", "ss", "ı", "i")...)
}()

// Confusable says whether two different texts have one key although both cannot be meant: they differ in more than
// in capitals and separators of the Latin alphabet, and people cannot see in what.
func Confusable(a, b string) bool {
	return a != b && Key(a) == Key(b) && !(plainText(a) && plainText(b))
}

func plainText(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// Spelt quotes two spellings so that one sees what they differ in.
func Spelt(a, b string) (string, string) {
	if Confusable(a, b) {
		return fmt.Sprintf("%+q", a), fmt.Sprintf("%+q", b)
	}
	return fmt.Sprintf("%q", a), fmt.Sprintf("%q", b)
}

// Shell writes a path, or another word of a command, as a shell reads it.
func Shell(path string) string {
	if path != "" && !strings.ContainsFunc(path, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("/._-+", r))
	}) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
