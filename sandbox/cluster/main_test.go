//go:build unix

package cluster

import (
	"os"
	"testing"

	"github.com/anykind/anykind/sandbox/internal/leftovers"
)

func TestMain(m *testing.M) { os.Exit(leftovers.Run(m)) }
