package apitest_test

import (
	"context"
	"testing"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/clustercopy"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/planscenario"
)

// TestPlan_CopyEqualsCluster plans with a copy of the sandbox, and compares with the sandbox after the apply.
func TestPlan_CopyEqualsCluster(t *testing.T) {
	c := client.Connect(t, "admin")
	for _, s := range planscenario.All() {
		t.Run(s.Name, func(t *testing.T) {
			planscenario.Run(t, c, &s, func(ctx context.Context) (*dynamic.Client, error) {
				copied, err := clustercopy.From(ctx, c, &clustercopy.Options{SecretData: true})
				if err != nil {
					return nil, err
				}
				return apitest.NewServer(t, &apitest.Options{Copy: copied}).Client(), nil
			})
		})
	}
}
