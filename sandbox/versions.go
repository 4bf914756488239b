//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/anykind/anykind/sandbox/sandbox"
)

func versions(_ context.Context, args []string) error {
	flags := newFlags("versions", "", "Prints a release of each minor version of Kubernetes that the sandbox supports,\noldest first.")
	if err := errors.Join(parse(flags, args), noArguments(flags)); err != nil {
		return err
	}
	for _, version := range sandbox.KubernetesVersions() {
		fmt.Println(version)
	}
	return nil
}
