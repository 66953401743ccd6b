package nats_test

import (
	"testing"

	"parley/engine/nats/natstest"
)

func TestMain(m *testing.M) { natstest.VerifyTestMain(m) }
