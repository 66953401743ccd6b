package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/cobra"

	"parley/internal/testkit"
)

func tree() *cobra.Command {
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "tool", Short: "Does things", Version: "1.2", Long: "First.\n\n.Second \\ line"}
	work := &cobra.Command{Use: "work FILE", Short: "Work on a file", Run: run, Example: "  tool work a.csv"}
	work.Flags().String("out", "", "folder for the results")
	root.AddCommand(work, &cobra.Command{Use: "secret", Hidden: true, Run: run})
	return root
}

func TestEveryCommandThatIsShownHasAPage(t *testing.T) {
	folder := t.TempDir()
	testkit.Do(t, writeManual(tree(), folder))
	names := testkit.Get(filepath.Glob(filepath.Join(folder, "*")))(t)
	want := []string{filepath.Join(folder, "tool-work.1"), filepath.Join(folder, "tool.1")}
	if !slices.Equal(names, want) {
		t.Errorf("pages %v, want %v", names, want)
	}
	if err := writeManual(tree(), folder); !errors.Is(err, fs.ErrExist) {
		t.Errorf("pages were written again: %v", err)
	}
	got := testkit.Get(os.ReadFile(want[0]))(t)
	if want := `.TH "TOOL\-WORK" 1 "" "tool 1.2" "User Commands"
.SH NAME
tool\-work \- Work on a file
.SH SYNOPSIS
.nf
tool work FILE [flags]
.fi
.SH OPTIONS
.nf
  \-h, \-\-help         help for work
      \-\-out string   folder for the results
.fi
.SH EXAMPLES
.nf
  tool work a.csv
.fi
.SH SEE ALSO
.BR tool (1)
`; string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTextIsNotReadAsRequests(t *testing.T) {
	if got, want := escape(".TH a\\b\n'c"), "\\&.TH a\\(rsb\n\\&'c"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAFolderThatDoesNotExistIsAnError(t *testing.T) {
	if err := writeManual(tree(), filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no error")
	}
}
