package nats

import (
	"context"
	"crypto/rand"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
)

// A server within this program syncs each message to its disk before it takes the next one of a bucket, and a batch
// at once. So what the coordinator puts while a put of its own is on its way there goes as one batch: the tasks of a
// round take a few commits, not one for each site. Below fewest values a batch takes more than they do. Servers of a
// cluster commit together what comes together, without being told.
const (
	fewest, mostTogether = 10, 500  // values
	shortTogether        = 64 << 10 // bytes of each, at most,
	sizeTogether         = 8 << 20  // and of all
)

// putting is a value that waits to be put.
type putting struct {
	p        place
	data     []byte
	after    uint64
	revision uint64
	err      error
	done     chan struct{}
}

// together publishes a value with all others that wait to be put into its bucket.
func (c *Conn) together(ctx context.Context, p, _ place, data []byte, after uint64) (uint64, error) {
	this := &putting{p: p, data: data, after: after, done: make(chan struct{})}
	c.mu.Lock()
	queue, busy := c.putting[p.bucket]
	c.putting[p.bucket] = append(queue, this)
	c.mu.Unlock()
	if !busy {
		go c.putAll(p.bucket)
	}
	select {
	case <-this.done:
		return this.revision, this.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// putAll puts what waits in a bucket, until nothing does. A batch that the broker does not take, as if one value has
// changed, goes one by one.
func (c *Conn) putAll(bucket string) {
	for {
		c.mu.Lock()
		queue, n := c.putting[bucket], 0
		for size := 0; n < min(len(queue), mostTogether) && size < sizeTogether; n++ {
			size += len(queue[n].data)
		}
		if c.putting[bucket] = queue[n:]; n == 0 {
			delete(c.putting, bucket)
		}
		c.mu.Unlock()
		if n == 0 {
			return
		}
		if n < fewest || c.commit(queue[:n]) != nil {
			var group sync.WaitGroup
			for _, each := range queue[:n] {
				group.Go(func() { each.revision, each.err = c.publish(c.ctx, each.p, each.p, each.data, each.after) })
			}
			group.Wait()
		}
		for _, each := range queue[:n] {
			close(each.done)
		}
	}
}

// commit publishes a batch, which the broker stores one after the other, or none of it.
func (c *Conn) commit(batch []*putting) error {
	nc, err := c.connection(c.ctx)
	id, last := rand.Text()[:8], len(batch)-1
	for i := 0; i <= last && err == nil; i++ {
		each, header := batch[i], expecting(batch[i].after)
		header["Nats-Batch-Id"], header["Nats-Batch-Sequence"] = []string{id}, []string{strconv.Itoa(i + 1)}
		if i < last {
			err = nc.PublishMsg(&nats.Msg{Subject: each.p.subject(), Header: header, Data: each.data})
			continue
		}
		header["Nats-Batch-Commit"] = []string{"1"}
		each.revision, err = c.publishWith(c.ctx, each.p, header, each.data)
	}
	for i, each := range batch {
		each.revision = batch[last].revision - uint64(last-i)
	}
	return err
}
