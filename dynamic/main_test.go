package dynamic_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if removeShared != nil {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			if err := removeShared(ctx); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
			cancel()
		}
		os.Exit(code)
	}))
}
