// Package flags reads the flags of measurements. What is wrong has been said when [Parse] returns
// [ErrUsage].
package flags

import (
	"errors"
	"flag"
	"fmt"
	"log"
)

// ErrUsage means flags that cannot be used; what was wrong has been said.
var ErrUsage = errors.New("flags out of range")

// Parse reads a command's flags, without arguments after them. check reports what
// is wrong with their values.
func Parse(flags *flag.FlagSet, args []string, check func() error) error {
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil: // Parse has said so
		return ErrUsage
	case flags.NArg() > 0:
		err = fmt.Errorf("%q is no flag", flags.Arg(0))
	default:
		err = check()
	}
	if err == nil {
		return nil
	}
	log.Printf("%s: %v", flags.Name(), err)
	return Refuse(flags)
}

// Refuse prints how a command is used, and returns [ErrUsage].
func Refuse(flags *flag.FlagSet) error {
	flags.Usage()
	return ErrUsage
}

// Values reads flags, and arguments if the command takes any: the caller checks both.
func Values(flags *flag.FlagSet, args []string) error {
	err := flags.Parse(args)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		return ErrUsage
	}
	return err
}
