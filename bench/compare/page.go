//go:build unix

package main

import (
	"context"
)

func writePage(ctx context.Context, opts *options, server *server, sides *sides, results []result) error {
	return nil
}
