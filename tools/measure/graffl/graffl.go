// Package graffl measures the method graffl for its documentation. It prints Markdown tables.
//
//	go run ./tools/measure graffl COMMAND [flags]
//
// Commands are listed by running it without one, and the flags of a command by
// COMMAND -h. Data are drawn from seeds; privacy noise, as always, comes from the
// operating system, so that private rows of the tables repeat within their
// deviation only.
package graffl

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"

	"parley/tools/measure/flags"
)

// command is one of the program's subcommands. It parses its own flags from args.
type command struct {
	name, about string
	run         func(ctx context.Context, args []string) error
}

var commands = []command{
	{"mixtures", "error, coverage and false advice in two to ten dimensions, beside a Gibbs sampler on all rows", mixtures},
	{"calibration", "simulation-based calibration of variant landmark on the toy, with a verdict", calibration},
	{"scarce", "the example of deaths in intensive care over seeds, with and without privacy", scarce},
	{"verdict", "how often sites keep synthetic rows that help, and rows that do not", verdicts},
}

// Run runs one of the commands; without one it lists them.
func Run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		usage()
		return flags.ErrUsage
	}
	for _, c := range commands {
		if c.name != args[0] {
			continue
		}
		err := c.run(ctx, args[1:])
		if err != nil && !errors.Is(err, flag.ErrHelp) && !errors.Is(err, flags.ErrUsage) {
			err = fmt.Errorf("%s: %w", c.name, err)
		}
		return err
	}
	log.Printf("no command %q", args[0])
	usage()
	return flags.ErrUsage
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: go run ./tools/measure graffl COMMAND [flags]")
	for _, c := range commands {
		fmt.Fprintf(os.Stderr, "  %-12s %s\n", c.name, c.about)
	}
}
