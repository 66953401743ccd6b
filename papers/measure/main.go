// Command measure measures what the product costs: processor time beside numpy, memory, bytes
// over the network. What the documentation quotes comes from the experiments.
// Tables go to standard output, what happens to standard error, and pictures to the
// folder that a flag names.
//
//	go run -C papers ./measure MEASUREMENT [flags]
//
// Measurements are listed by running it without one, and the flags of one by MEASUREMENT -h. It
// exits with status 1 when what is promised does not hold, and with 2 on flags that make no
// sense.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"

	"parley/papers/internal/clone"
)

var measurements = []struct {
	name, about string
	run         func(ctx context.Context, args []string) error // parses its own flags
}{
	{"size", "processor time of whole studies of many features or many sites, beside numpy on pooled rows", runSize},
	{"network", "a coordinator and many sites over real sockets: rounds, memory, bytes", runNetwork},
	{"bigcsv", "nothing: writes a large data set to measure reading with", runBigCSV},
}

func main() {
	log.SetFlags(0)
	if err := clone.Enter(); err != nil {
		log.Fatal(err)
	}
	if len(os.Args) < 2 {
		usage()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for _, m := range measurements {
		if m.name != os.Args[1] {
			continue
		}
		log.SetPrefix(m.name + ": ")
		err := m.run(ctx, os.Args[2:])
		switch {
		case errors.Is(err, flag.ErrHelp):
		case errors.Is(err, errUsage):
			os.Exit(2)
		case err != nil:
			log.Fatal(err)
		}
		return
	}
	log.Printf("no measurement %q", os.Args[1])
	usage()
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: go run -C papers ./measure MEASUREMENT [flags]")
	for _, m := range measurements {
		fmt.Fprintf(os.Stderr, "  %-12s %s\n", m.name, m.about)
	}
	os.Exit(2)
}

// errUsage means flags that cannot be used; what was wrong has been said.
var errUsage = errors.New("flags out of range")

// parse reads the flags of a measurement, without arguments after them. check reports what
// is wrong with their values.
func parse(flags *flag.FlagSet, args []string, check func() error) error {
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil: // Parse has said so
		return errUsage
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
	return errUsage
}
