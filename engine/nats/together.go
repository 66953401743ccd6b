package nats

import (
	"context"
	"crypto/rand"
	"maps"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
)

// A server within this program syncs each message to its disk before it takes the next one of a bucket, and a batch
// by seven syncs, however long it is. So what the coordinator puts while a put of its own is on its way there goes as
// one batch, but no longer one than lets sites begin while others have yet to be asked. Servers of a cluster commit
// together what comes together, without being told. Answers are each another writer's, and are not joined.
const fewest, mostTogether, shortTogether = 10, 64, 16 << 10 // messages, and bytes of each at most

// putting is a message that waits to be stored.
type putting struct {
	p        place
	header   nats.Header
	data     []byte
	revision uint64
	err      error
	done     chan struct{}
}

// together publishes a message with all others that wait to be stored in its bucket.
func (c *Conn) together(ctx context.Context, this *putting) (uint64, error) {
	if c.o.Server == nil || len(this.data) > shortTogether {
		return c.publish(ctx, this.p, this.header, this.data)
	}
	c.mu.Lock()
	queue, busy := c.putting[this.p.bucket]
	c.putting[this.p.bucket] = append(queue, this)
	c.mu.Unlock()
	if !busy {
		go c.putAll(this.p.bucket)
	}
	select {
	case <-this.done:
		return this.revision, this.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// putAll stores what waits for a bucket, until nothing does. A batch that the broker does not take, as if one value has
// changed, goes one by one.
func (c *Conn) putAll(bucket string) {
	for {
		c.mu.Lock()
		queue := c.putting[bucket]
		batch := queue[:min(len(queue), mostTogether)]
		if c.putting[bucket] = queue[len(batch):]; len(batch) == 0 {
			delete(c.putting, bucket)
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		if len(batch) < fewest || c.commit(batch) != nil {
			var group sync.WaitGroup
			for _, each := range batch {
				group.Go(func() { each.revision, each.err = c.publish(c.ctx, each.p, each.header, each.data) })
			}
			group.Wait()
		}
		for _, each := range batch {
			close(each.done)
		}
	}
}

// commit publishes a batch, which the broker stores one after the other, or none of it.
func (c *Conn) commit(batch []*putting) error {
	nc, err := c.connection(c.ctx)
	id, last := rand.Text()[:8], len(batch)-1
	for i := 0; i <= last && err == nil; i++ {
		each, header := batch[i], maps.Clone(batch[i].header)
		header["Nats-Batch-Id"], header["Nats-Batch-Sequence"] = []string{id}, []string{strconv.Itoa(i + 1)}
		if i < last {
			err = nc.PublishMsg(&nats.Msg{Subject: each.p.subject(), Header: header, Data: each.data})
			continue
		}
		header["Nats-Batch-Commit"] = []string{"1"}
		each.revision, err = c.publish(c.ctx, each.p, header, each.data)
	}
	for i, each := range batch {
		each.revision = batch[last].revision - uint64(last-i)
	}
	return err
}
