// Package wire carries a study between machines that cannot call each other, over
// named values that somebody else keeps: a [Wire]. Whoever keeps them is not
// trusted with anything but being there now and then.
//
// There is one value for each site and direction. The coordinator puts a task in
// one, again and again until the other holds the answer to it; the site reads
// the first and puts its answer in the second. What is lost is put again; what
// comes twice, late, or in another order is recognised by the task's name, and
// answered with the stored bytes.
//
// Every message is signed by the end that it comes from, with a key that is used
// for nothing else, and sealed to the one that it goes to, when it is sent. What
// cannot be opened, or was not signed by the other end for this study, this site
// and this direction, has no effect but a line of audit.
package wire

import (
	"context"
	"errors"
)

// ErrMoved means that a value has changed since its writer last saw it.
var ErrMoved = errors.New("the value has changed meanwhile")

// ErrTooLarge means that a value is larger than the wire carries.
var ErrTooLarge = errors.New("the value is larger than the wire carries")

// Wire keeps named values. Whatever keeps them may lose them all; then their
// revisions begin again.
type Wire interface {
	// Put makes value that of key, if the revision is still after (0: there is
	// none), and returns the new revision, which is higher; otherwise ErrMoved, or
	// ErrTooLarge, which no later try changes.
	// When another error is returned, the value may have been put or not.
	Put(ctx context.Context, key string, value []byte, after uint64) (revision uint64, err error)
	// Get returns the value of key, with revision 0 if there is none.
	Get(ctx context.Context, key string) (value []byte, revision uint64, err error)
	// Wait returns the value as soon as its revision is not the one seen, or
	// fails when ctx ends. It may return one that has been replaced meanwhile, as
	// the next Wait tells.
	Wait(ctx context.Context, key string, seen uint64) (value []byte, revision uint64, err error)
}

// TaskKey and AnswerKey name the values of a site in a study.
func TaskKey(study, site string) string   { return study + ".task." + site }
func AnswerKey(study, site string) string { return study + ".answer." + site }
