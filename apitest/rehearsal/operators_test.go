package rehearsal_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/clustercopy"
	"github.com/anykind/anykind/apitest/examples/greeter"
	"github.com/anykind/anykind/apitest/rehearsal"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/examples/operator/greeting"
	"github.com/anykind/anykind/unstructured"
)

func TestRun_Operators(t *testing.T) {
	definition, err := os.ReadFile("../../examples/operator/greeting/crd.yaml")
	require.NoError(t, err)
	for name, operator := range map[string]func(context.Context, *dynamic.Client) error{
		"controller":   greeter.Run,
		"own operator": func(ctx context.Context, client *dynamic.Client) error { return greeting.Run(ctx, client, "", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			server := apitest.NewServer(t, &apitest.Options{Objects: decode(t, string(definition)+
				"---\n{apiVersion: example.com/v1, kind: Greeting, metadata: {name: first, namespace: default}, spec: {name: Ada}}\n")})
			client := server.Client()
			defer client.Close()
			copied, err := clustercopy.From(t.Context(), client, nil)
			require.NoError(t, err)

			run := func() *rehearsal.Report {
				server := apitest.NewServer(t, &apitest.Options{Copy: copied})
				report, err := rehearsal.Run(t.Context(), server, func(ctx context.Context, server *apitest.Server) error {
					client := server.Client()
					defer client.Close()
					return operator(ctx, client)
				}, &rehearsal.Options{Quiet: time.Second})
				require.NoError(t, err)
				require.NoError(t, report.Err)
				return report
			}
			first := run()
			assert.Equal(t, rehearsal.Quiet, first.Outcome)
			var created []string
			for _, change := range first.Changes {
				if change.Live == nil {
					created = append(created, change.Object.String())
				}
			}
			assert.Equal(t, []string{`ConfigMap "default/first"`}, created)
			assert.Empty(t, rehearsal.Compare(first, run()))
		})
	}
}

func decode(t *testing.T, text string) (objects []*unstructured.Object) {
	t.Helper()
	for obj, err := range unstructured.NewYAMLDecoder(strings.NewReader(text)).All() {
		require.NoError(t, err)
		objects = append(objects, obj)
	}
	return objects
}
