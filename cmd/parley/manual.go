package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// writeManual writes one page of section 1 for the command and each below it that is not
// hidden, as NAME-SUBCOMMAND.1, into a folder that exists. A file that is there
// already is an error. The pages carry no date, so that the same program writes the
// same bytes.
func writeManual(c *cobra.Command, folder string) error {
	f, err := os.OpenFile(filepath.Join(folder, pageName(c)+".1"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(page(c))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	for _, sub := range shown(c) {
		if err := writeManual(sub, folder); err != nil {
			return err
		}
	}
	return nil
}

// shown are the commands directly below one that have a page.
func shown(c *cobra.Command) (subs []*cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			subs = append(subs, sub)
		}
	}
	return subs
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// page is the page of one command in the man macros of roff.
func page(c *cobra.Command) []byte {
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	var b bytes.Buffer
	fmt.Fprintf(&b, ".TH \"%s\" 1 \"\" \"%s\" \"User Commands\"\n", escape(strings.ToUpper(pageName(c))),
		escape(c.Root().Name()+" "+c.Root().Version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escape(pageName(c)), escape(c.Short))
	b.WriteString(".SH SYNOPSIS\n")
	if c.Runnable() {
		verbatim(&b, c.UseLine())
	} else {
		verbatim(&b, c.CommandPath()+" COMMAND")
	}
	if c.Long != "" {
		b.WriteString(".SH DESCRIPTION\n")
		for i, paragraph := range strings.Split(strings.TrimSpace(c.Long), "\n\n") {
			if i > 0 {
				b.WriteString(".PP\n")
			}
			// A line that begins with a space is set as it is, so that lists stay lists.
			fmt.Fprintf(&b, "%s\n", escape(paragraph))
		}
	}
	if subs := shown(c); len(subs) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range subs {
			fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", escape(pageName(sub)), escape(sub.Short))
		}
	}
	if c.HasAvailableLocalFlags() {
		b.WriteString(".SH OPTIONS\n")
		verbatim(&b, c.LocalFlags().FlagUsagesWrapped(72))
	}
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		verbatim(&b, c.Example)
	}
	if c.HasParent() {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", escape(pageName(c.Parent())))
	}
	return b.Bytes()
}

// verbatim sets lines as they stand.
func verbatim(b *bytes.Buffer, text string) {
	fmt.Fprintf(b, ".nf\n%s\n.fi\n", escape(strings.TrimRight(text, "\n")))
}

// escape keeps roff from reading text as requests or typography.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\(rs`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
