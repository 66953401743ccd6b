// Command parley fits Bayesian models to the data of several sites, while no
// subject's row leaves a site. See docs/reference/cli.md for its commands and
// exit codes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"parley/internal/manual"
	"parley/internal/version"
	"parley/method"
	"parley/methods/graffl"
	"parley/methods/mvppca"
	"parley/methods/pvi"
	"parley/methods/vae"
)

// methods is every method this program knows: the one line to add to.
var methods = method.Registry{mvppca.Method{}, pvi.Method{}, graffl.Method{}, vae.Method{}}

// Exit codes, documented in docs/reference/cli.md.
const (
	exitOK          = 0
	exitFailed      = 1   // the work was done and the answer is no, or it could not be done
	exitUsage       = 2   // the command line itself is wrong
	exitInterrupted = 130 // stopped by a person; run the same command to continue
)

// resumes marks, in a command's annotations, that what was interrupted continues.
const resumes = "resumes"

func main() { os.Exit(execute()) }

func execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	root := &cobra.Command{
		Use:   "parley",
		Short: "Federated Bayesian learning for multi-centre studies",
		Long: "Parley fits one Bayesian model to the data of several sites, while no subject's row\n" +
			"leaves a site. A study is described by a plan, one YAML file.",
		Version:       version.String(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(commands()...)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w\n  hint: see '%s --help'", err, c.CommandPath())}
	})
	began := false
	prepare(root, &began)
	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		resume := ""
		if cmd.Annotations[resumes] != "" {
			resume = "; run the same command again to continue"
		}
		fmt.Fprintln(os.Stderr, "parley: interrupted"+resume)
		return exitInterrupted
	}
	fmt.Fprintf(os.Stderr, "parley: error: %s\n", indent(err.Error()))
	if usage := (*usageError)(nil); !began || errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

// commands are all of them.
func commands() []*cobra.Command {
	return []*cobra.Command{planCommand(), dataCommand(), selectCommand(), runCommand(), modelCommand(), compareCommand(), evaluateCommand(), privacyCommand(), siteCommand(), coordinatorCommand(), demoCommand(), attackCommand(), experimentCommand(), verifyCommand(), manualCommand()}
}

func manualCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "manual DIR",
		Short: "Write the manual pages",
		Long: "Writes a manual page for each command into a folder that exists, as parley-COMMAND.1. They\n" +
			"say what --help says. A page that is there already is not replaced.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error { return manual.Write(cmd.Root(), a[0]) },
	}
}

// prepare makes the commands set began when they have been understood and
// begin to work, and commands that only group others refuse what they are not.
func prepare(c *cobra.Command, began *bool) {
	if run := c.RunE; run != nil {
		c.RunE = func(c *cobra.Command, a []string) error {
			*began = true
			return run(c, a)
		}
	} else if c.HasParent() {
		c.DisableFlagsInUseLine = true
		c.RunE = func(c *cobra.Command, a []string) error {
			if len(a) > 0 {
				return fmt.Errorf("unknown command %q for %q\n  hint: see '%s --help'", a[0], c.CommandPath(), c.CommandPath())
			}
			return c.Help()
		}
	}
	for _, sub := range c.Commands() {
		prepare(sub, began)
	}
}

// usageError marks a command line that could not be understood.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// args wraps cobra's check of positional arguments.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, a []string) error {
		if err := check(c, a); err != nil {
			return &usageError{fmt.Errorf("%w\n  hint: usage: %s", err, c.UseLine())}
		}
		return nil
	}
}

// indent sets every problem of a list on a line of its own below the first.
func indent(s string) string {
	if strings.Contains(s, "\n") && !strings.Contains(s, "\n  hint:") {
		return "\n" + s
	}
	return s
}
