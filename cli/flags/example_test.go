package flags_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/internal/testing/scripted"
)

// A program with a flag --server of its own, and -n for something else, leaves kubectl's flags out.
func ExampleConnection_AddFlags() {
	fs := pflag.NewFlagSet("shopctl", pflag.ContinueOnError)
	shop := fs.String("server", "", "The shop to manage")
	connection := flags.NewConnection()
	connection.AddFlags(fs, "password", "-n")
	if err := fs.Parse([]string{"--server=toys", "--namespace=shop", "--as=ann"}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(*shop, connection.NamespaceFlag, connection.As, connection.Server == "")
	fmt.Println(fs.Lookup("password") == nil, fs.ShorthandLookup("n") == nil)
	// Output:
	// toys shop ann true
	// true true
}

func ExampleSelection() {
	fs := pflag.NewFlagSet("shopctl", pflag.ContinueOnError)
	selection := &flags.Selection{}
	selection.AddFlags(fs)
	selection.AddChunkFlag(fs)
	if err := fs.Parse([]string{"-l", "app=web", "--field-selector=status.phase=Running", "-A"}); err != nil {
		log.Fatal(err)
	}
	opts := selection.ListOptions()
	fmt.Println(opts.LabelSelector, opts.FieldSelector, opts.Limit, selection.AllNamespaces)
	// Output: app=web status.phase=Running 500 true
}

func ExampleWrite() {
	fs := pflag.NewFlagSet("shopctl", pflag.ContinueOnError)
	write := &flags.Write{}
	write.AddDryRunFlag(fs)
	write.AddFieldManagerFlag(fs)
	write.AddValidateFlag(fs)
	if err := fs.Parse([]string{"--dry-run=server", "--field-manager=shopctl", "--validate=warn"}); err != nil {
		log.Fatal(err)
	}
	if err := write.Complete(log.Printf); err != nil {
		log.Fatal(err)
	}
	defaults := write.Defaults() // for Resource.WithDefaults
	fmt.Println("suspended"+write.DryRun.Suffix(), defaults.FieldManager, defaults.FieldValidation, defaults.DryRun)
	// Output: suspended (server dry run) shopctl Warn true
}

func ExampleConnection_Config() {
	fs := pflag.NewFlagSet("shopctl", pflag.ContinueOnError)
	connection := flags.NewConnection()
	connection.AddFlags(fs)
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	kubeconfig := filepath.Join(folder, "config")
	const text = `{"clusters": [{"name": "east", "cluster": {"server": "https://127.0.0.1:6443"}}],
		"users": [{"name": "ann", "user": {"token": "a-secret"}}],
		"contexts": [{"name": "east", "context": {"cluster": "east", "user": "ann", "namespace": "shop"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	if err := fs.Parse([]string{"--kubeconfig", kubeconfig, "--context=east", "--as=bob"}); err != nil {
		log.Fatal(err)
	}
	cfg, err := connection.Config(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(cfg.Server, cfg.Namespace, cfg.Impersonate.User, cfg.Token)
	// Output:
	// https://127.0.0.1:6443 shop bob REDACTED
}

// A client of the flags. All calls return the same client.
func ExampleConnection_Client() {
	ctx := context.Background()
	api := scripted.New("/v1 configmaps configmap ConfigMap")
	api.Handle("GET /api/v1/namespaces/shop/configmaps/settings", scripted.JSON(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"}}`))
	server := httptest.NewServer(api) // in place of a cluster
	defer server.Close()
	fs := pflag.NewFlagSet("shopctl", pflag.ContinueOnError)
	connection := &flags.Connection{} // NewConnection also has kubectl's discovery cache
	connection.AddFlags(fs)
	if err := fs.Parse([]string{"--kubeconfig", os.DevNull, "--server", server.URL, "-n", "shop"}); err != nil {
		log.Fatal(err)
	}
	defer connection.Close()

	client, err := connection.Client(ctx)
	if err != nil {
		log.Fatal(err)
	}
	namespace, isSet, err := connection.Namespace(ctx)
	if err != nil {
		log.Fatal(err)
	}
	configMaps, err := client.Resource(ctx, "configmaps")
	if err != nil {
		log.Fatal(err)
	}
	settings, err := configMaps.Namespace(namespace).Get(ctx, "settings", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(settings.GetName(), namespace, isSet)
	// Output: settings shop true
}
