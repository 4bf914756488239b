package dynamic_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(tests *testing.M) {
	m := cleanedUp{tests}
	goleak.VerifyTestMain(m)
}

// cleanedUp removes what tests share when the last of them has ended.
type cleanedUp struct{ *testing.M }

func (m cleanedUp) Run() int {
	code := m.M.Run()
	if removeShared == nil {
		return code
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := removeShared(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}
