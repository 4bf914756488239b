package rehearsal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/rehearsal"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) {
	if os.Getenv("REHEARSAL_PROCESS") != "" {
		os.Exit(runProcess())
	}
	goleak.VerifyTestMain(m)
}

// runProcess is the controller of TestCommand: it creates a ConfigMap and runs until it is interrupted.
func runProcess() int {
	cfg, err := transport.Load(context.Background(), nil)
	if err == nil {
		var client *dynamic.Client
		if client, err = dynamic.Connect(context.Background(), cfg); err == nil {
			err = create(context.Background(), client, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"of-process","namespace":"default"}}`)
		}
	}
	if err != nil || os.Getenv("REHEARSAL_PROCESS") == "ends" {
		fmt.Println("process:", err)
		return 3
	}
	time.Sleep(time.Minute)
	return 0
}

func create(ctx context.Context, client *dynamic.Client, text string) error {
	obj, err := unstructured.Decode([]byte(text))
	if err != nil {
		return err
	}
	resource, err := client.ForObject(ctx, obj)
	if err != nil {
		return err
	}
	_, err = resource.Create(ctx, obj, nil)
	return err
}

func patch(ctx context.Context, client *dynamic.Client, resource, name, subresource, text string) error {
	handle, err := client.Resource(ctx, resource)
	if err != nil {
		return err
	}
	handle = handle.Namespace("default")
	if subresource != "" {
		handle = handle.Subresource(subresource)
	}
	_, err = handle.Patch(ctx, name, types.MergePatchType, []byte(text), nil)
	return err
}

func start(t *testing.T) *apitest.Server { return startWith(t, &apitest.Options{}) }

func startWith(t *testing.T, opts *apitest.Options) *apitest.Server {
	t.Helper()
	var objects []*unstructured.Object
	for _, text := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"changed","namespace":"default"},"data":{"a":"1"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"deleted","namespace":"default"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"left","namespace":"default"}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"secret","namespace":"default"},"data":{"password":"cGFzcw=="}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"default"},"spec":{"selector":{"matchLabels":{"a":"b"}},
		  "template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"web","image":"web"}]}}}}`,
	} {
		obj, err := unstructured.Decode([]byte(text))
		require.NoError(t, err)
		objects = append(objects, obj)
	}
	opts.Objects = objects
	return apitest.NewServer(t, opts)
}

var quick = &rehearsal.Options{Quiet: time.Second}

// controller writes an object of each class.
func controller(ctx context.Context, server *apitest.Server) error {
	client := server.Client()
	defer client.Close()
	secrets, err := client.Resource(ctx, "secrets")
	if err != nil {
		return err
	}
	configMaps, err := client.Resource(ctx, "configmaps")
	if err != nil {
		return err
	}
	_, deleteErr := configMaps.Namespace("default").Delete(ctx, "deleted", nil)
	_, missing := secrets.Namespace("default").Get(ctx, "missing", nil)
	if missing == nil {
		return errors.New("a missing object was found")
	}
	err = errors.Join(deleteErr,
		create(ctx, client, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"created","namespace":"default"}}`),
		patch(ctx, client, "configmaps", "changed", "", `{"data":{"a":"2"}}`),
		patch(ctx, client, "configmaps", "changed", "", `{"data":{"a":"3"}}`),
		patch(ctx, client, "secrets", "secret", "", `{"data":{"password":"d29yZA=="}}`),
		patch(ctx, client, "deployments", "web", "status", `{"status":{"replicas":1}}`),
		create(ctx, client, `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"leader","namespace":"default"},"spec":{"holderIdentity":"me"}}`),
		create(ctx, client, `{"apiVersion":"v1","kind":"Event","metadata":{"name":"event","namespace":"default"},"type":"Normal","reason":"Scaled","message":"to 1",
		  "involvedObject":{"kind":"Deployment","namespace":"default","name":"web"}}`),
	)
	if err != nil {
		return err
	}
	invalid := patch(ctx, client, "deployments", "web", "", `{"spec":{"replicas":-1}}`)
	if invalid == nil {
		return errors.New("an invalid object was accepted")
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestRun_ReportsClassesOfWrites(t *testing.T) {
	report, err := rehearsal.Run(t.Context(), start(t), controller, quick)
	require.NoError(t, err)
	require.NoError(t, report.Err)
	assert.Equal(t, rehearsal.Quiet, report.Outcome)
	var changes []string
	for _, change := range report.Changes {
		changes = append(changes, fmt.Sprint(change.Action, " ", change.Object.Name))
	}
	assert.Equal(t, []string{"configure changed", "create created", "delete deleted", "configure secret"}, changes)
	require.Len(t, report.Status, 1)
	assert.Equal(t, "web", report.Status[0].Object.Name)
	assert.Equal(t, []rehearsal.Event{{Object: "Deployment default/web", Type: "Normal", Reason: "Scaled", Message: "to 1"}}, report.Events)
	assert.Equal(t, []string{"default/leader"}, report.Leases)
	assert.Equal(t, []rehearsal.Repeated{{Object: "configmaps default/changed", Writes: 2}}, report.Repeated)
	assert.Equal(t, []rehearsal.Failed{{Request: "patch deployments.apps", Code: 422, Count: 1}}, report.Failed)

	var text bytes.Buffer
	require.NoError(t, report.WriteText(&text, nil, nil))
	assert.Contains(t, text.String(), "-  a: \"1\"\n+  a: \"3\"\n")
	assert.NotContains(t, text.String(), "d29yZA==", "Secrets are masked")
	var data bytes.Buffer
	require.NoError(t, report.WriteJSON(&data, nil))
	assert.Contains(t, data.String(), `"reason": "Scaled"`)
	assert.NotContains(t, data.String(), "d29yZA==")
}

func TestRun_Outcomes(t *testing.T) {
	failure := errors.New("no leader")
	t.Run("the controller ends", func(t *testing.T) {
		report, err := rehearsal.Run(t.Context(), start(t), func(context.Context, *apitest.Server) error { return failure }, quick)
		require.NoError(t, err)
		assert.Equal(t, rehearsal.Ended, report.Outcome)
		require.ErrorIs(t, report.Err, failure)
		assert.Empty(t, report.Changes)
	})
	t.Run("the controller is never quiet", func(t *testing.T) {
		report, err := rehearsal.Run(t.Context(), start(t), func(ctx context.Context, server *apitest.Server) error {
			client := server.Client()
			defer client.Close()
			for i := 0; ctx.Err() == nil; i++ {
				err := patch(ctx, client, "configmaps", "changed", "", fmt.Sprintf(`{"data":{"a":"%d"}}`, i))
				if err != nil {
					return err
				}
			}
			return ctx.Err()
		}, &rehearsal.Options{Quiet: 3 * time.Second, Timeout: 2 * time.Second})
		require.NoError(t, err)
		assert.Equal(t, rehearsal.TimedOut, report.Outcome)
		require.Len(t, report.Repeated, 1)
		assert.Greater(t, report.Repeated[0].Writes, 1)
	})
	t.Run("the server forgets requests", func(t *testing.T) {
		server := startWith(t, &apitest.Options{History: 10})
		report, err := rehearsal.Run(t.Context(), server, func(ctx context.Context, server *apitest.Server) error {
			client := server.Client()
			defer client.Close()
			for i := 0; ctx.Err() == nil; i++ {
				if err := patch(ctx, client, "configmaps", "changed", "", fmt.Sprintf(`{"data":{"a":"%d"}}`, i)); err != nil {
					return err
				}
			}
			return ctx.Err()
		}, &rehearsal.Options{Quiet: time.Second, Timeout: 3 * time.Second})
		require.NoError(t, err)
		assert.Equal(t, rehearsal.TimedOut, report.Outcome)
	})
	t.Run("ctx ends", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(50*time.Millisecond, func() { cancel(failure) })
		_, err := rehearsal.Run(ctx, start(t), controller, quick)
		require.ErrorIs(t, err, failure)
	})
	t.Run("the controller does not stop", func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		_, err := rehearsal.Run(t.Context(), start(t), func(context.Context, *apitest.Server) error {
			<-release
			return nil
		}, &rehearsal.Options{Timeout: 50 * time.Millisecond, Stop: 50 * time.Millisecond})
		require.ErrorContains(t, err, "did not end within 50ms")
	})
}

func TestCompare_VersionsOfController(t *testing.T) {
	run := func(color string) *rehearsal.Report {
		report, err := rehearsal.Run(t.Context(), start(t), func(ctx context.Context, server *apitest.Server) error {
			client := server.Client()
			defer client.Close()
			err := errors.Join(
				create(ctx, client, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"same","namespace":"default"},"data":{"time":"`+time.Now().Format(time.RFC3339)+`"}}`),
				create(ctx, client, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"differs","namespace":"default"},"data":{"color":"`+color+`"}}`),
			)
			if color == "blue" {
				err = errors.Join(err, create(ctx, client, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"more","namespace":"default"}}`))
			}
			if err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		}, quick)
		require.NoError(t, err)
		return report
	}
	red := run("red")
	assert.Empty(t, rehearsal.Compare(red, run("red")))
	var changes []string
	for _, change := range rehearsal.Compare(red, run("blue")) {
		changes = append(changes, fmt.Sprint(change.Action, " ", change.Object.Name))
	}
	assert.Equal(t, []string{"configure differs", "create more"}, changes)
}

func TestCommand_RunsProcess(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "203.0.113.1")
	t.Setenv("REHEARSAL_PROCESS", "runs")
	report, err := rehearsal.Run(t.Context(), start(t), rehearsal.Command(nil, os.Args[0]), quick)
	require.NoError(t, err)
	require.NoError(t, report.Err)
	assert.Equal(t, rehearsal.Quiet, report.Outcome)
	require.Len(t, report.Changes, 1)
	assert.Equal(t, "of-process", report.Changes[0].Object.Name)

	t.Setenv("REHEARSAL_PROCESS", "ends")
	var output bytes.Buffer
	report, err = rehearsal.Run(t.Context(), start(t), rehearsal.Command(&output, os.Args[0]), nil)
	require.NoError(t, err)
	assert.Equal(t, rehearsal.Ended, report.Outcome)
	require.ErrorContains(t, report.Err, "exit status 3")
	assert.True(t, strings.HasPrefix(output.String(), "process:"), output.String())
}
