// Command graffl measures the method graffl for its documentation: tables in
// Markdown, pictures as SVG with their numbers as CSV.
//
//	go run ./tools/graffl COMMAND [flags]
//
// Commands are listed by running it without one, and the flags of a command by
// COMMAND -h. Data are drawn from seeds; privacy noise, as always, comes from the
// operating system, so that private rows of the tables repeat within their
// deviation only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
)

// command is one of the program's subcommands. It parses its own flags from args.
type command struct {
	name, about string
	run         func(ctx context.Context, args []string) error
}

var commands = []command{
	{"toy", "error, coverage and cost of variant landmark on the paper's toy, through the engine", toy},
	{"calibration", "simulation-based calibration of variant landmark, with a verdict", calibration},
	{"published", "what variant published finds of the toy, and what it does not", published},
	{"set", "error and cost of variant set on the toy", set},
	{"applied", "what synthetic rows of a scarce class are worth, beside the controls", applied},
	{"scarce", "the example of deaths in intensive care over seeds, with and without privacy", scarce},
	{"verdict", "how often sites keep synthetic rows that help, and rows that do not", verdicts},
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("graffl: ")
	if len(os.Args) < 2 {
		usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for _, c := range commands {
		if c.name != os.Args[1] {
			continue
		}
		err := c.run(ctx, os.Args[2:])
		switch {
		case errors.Is(err, flag.ErrHelp):
		case errors.Is(err, errFlags):
			os.Exit(2)
		case err != nil:
			log.Fatalf("%s: %v", c.name, err)
		}
		return
	}
	log.Printf("no command %q", os.Args[1])
	usage()
	os.Exit(2)
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: go run ./tools/graffl COMMAND [flags]")
	for _, c := range commands {
		fmt.Fprintf(os.Stderr, "  %-12s %s\n", c.name, c.about)
	}
}

// errFlags means flags that cannot be used; what was wrong has been said.
var errFlags = errors.New("flags out of range")

// parse reads a command's flags. check reports what is wrong with their values.
func parse(flags *flag.FlagSet, args []string, check func() error) error {
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil: // Parse has said so
		return errFlags
	case flags.NArg() > 0:
		err = fmt.Errorf("%q is no flag", flags.Arg(0))
	default:
		err = check()
	}
	if err == nil {
		return nil
	}
	log.Printf("%s: %v", flags.Name(), err)
	flags.Usage()
	return errFlags
}
