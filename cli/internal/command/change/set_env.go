package change

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/command/change/podenv"
	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/unstructured"
)

type setEnvOptions struct {
	setOptions

	env        []string
	from       string
	prefix     string
	keys       []string
	containers string
	overwrite  bool
	list       bool
	resolve    bool

	variables []map[string]any
	remove    []string
}

func setEnvCommand(s *command.State) *cobra.Command {
	o := &setEnvOptions{setOptions: setOptions{missing: errNoResources, failure: "failed to patch env update to pod template: "}}
	cmd := &cobra.Command{
		Use:     "env RESOURCE/NAME KEY_1=VAL_1 ... KEY_N=VAL_N",
		Short:   "Update environment variables on a pod template",
		Long:    "Update the environment of the containers of pods, and of any kind with a pod template. KEY- removes a variable, - reads variables from standard input.",
		Example: "  anyctl set env deployment/web MODE=fast DEBUG-\n  anyctl set env deployment/web --list\n  anyctl set env --from=configmap/settings deployment/web",
		RunE:    func(cmd *cobra.Command, args []string) error { return o.runEnv(cmd.Context(), s, args) },
	}
	o.addFlags(cmd, s)
	fs := cmd.Flags()
	fs.StringArrayVarP(&o.env, "env", "e", nil, "Specify a key-value pair for an environment variable to set into each container.")
	fs.StringVar(&o.from, "from", "", "The name of a resource from which to inject environment variables: configmap/NAME or secret/NAME.")
	fs.StringVar(&o.prefix, "prefix", "", "Prefix to append to variable names")
	fs.StringSliceVar(&o.keys, "keys", nil, "Comma-separated list of keys to import from specified resource")
	fs.StringVarP(&o.containers, "containers", "c", "*", "The names of containers in the selected pod templates to change - may use wildcards")
	fs.BoolVar(&o.overwrite, "overwrite", true, "If true, allow environment to be overwritten, otherwise reject updates that overwrite existing environment.")
	fs.BoolVar(&o.list, "list", false, "If true, display the environment and any changes in the standard format. ")
	fs.BoolVar(&o.resolve, "resolve", false, "If true, show secret or configmap references when listing variables")
	return cmd
}

func (o *setEnvOptions) runEnv(ctx context.Context, s *command.State, args []string) error {
	resources, pairs, err := splitEnv(args)
	if err != nil {
		return err
	}
	if err := o.checkResources(ctx, resources); err != nil {
		return err
	}
	switch {
	case o.list && o.output.Output != "":
		return errors.New("--list and --output may not be specified together")
	case len(o.keys) > 0 && o.from == "":
		return errors.New("when specifying --keys, a configmap or secret must be provided with --from")
	}
	if err := o.parse(append(o.env, pairs...), s.In); err != nil {
		return err
	}
	if o.from != "" {
		if err := o.readFrom(ctx, s); err != nil {
			return err
		}
	}
	for _, variable := range o.variables {
		variable["name"] = fmt.Sprint(o.prefix, variable["name"])
	}
	if len(o.variables)+len(o.remove) == 0 && !o.list {
		return errors.New("at least one environment variable must be provided")
	}
	env := &podenv.Printer{State: s, Resolve: o.resolve && !o.objects.Local}
	return o.run(ctx, s, resources, "env updated", "", func(t *resource.Info, obj *unstructured.Object) error {
		return o.change(ctx, env, t, obj)
	})
}

// splitEnv splits arguments into objects and the variables behind them: KEY=VALUE, KEY- or -.
func splitEnv(args []string) (resources, pairs []string, err error) {
	for _, arg := range args {
		isPair := strings.Contains(arg, "=") || strings.HasSuffix(arg, "-")
		switch {
		case isPair:
			pairs = append(pairs, arg)
		case len(pairs) > 0:
			return nil, nil, fmt.Errorf("all resources must be specified before environment changes: %s", arg)
		default:
			resources = append(resources, arg)
		}
	}
	return resources, pairs, nil
}

func (o *setEnvOptions) parse(pairs []string, in io.Reader) error {
	for _, pair := range pairs {
		name, value, hasValue := strings.Cut(pair, "=")
		switch {
		case pair == "-":
			if err := o.parseInput(in); err != nil {
				return err
			}
		case hasValue:
			if errs := validation.IsEnvVarName(name); len(errs) > 0 {
				return fmt.Errorf("%q is not a valid key name: %s", name, strings.Join(errs, ";"))
			}
			o.variables = append(o.variables, map[string]any{"name": name, "value": value})
		case strings.HasSuffix(pair, "-"):
			o.remove = append(o.remove, strings.TrimSuffix(pair, "-"))
		default:
			return fmt.Errorf("unknown environment variable: %s", pair)
		}
	}
	for _, variable := range o.variables {
		if name := nested.String(variable, "name"); slices.Contains(o.remove, name) {
			return fmt.Errorf("can not both modify and remove an environment variable in the same command: %s", name)
		}
	}
	return nil
}

func (o *setEnvOptions) parseInput(in io.Reader) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		name, value, hasValue := strings.Cut(lines.Text(), "=")
		if hasValue && name != "" && !strings.HasPrefix(name, "#") {
			o.variables = append(o.variables, map[string]any{"name": name, "value": value})
		}
	}
	return lines.Err()
}

// readFrom adds references to the keys of a ConfigMap or Secret.
func (o *setEnvOptions) readFrom(ctx context.Context, s *command.State) error {
	targets, err := (&resource.Finder{Connection: s.Connection}).Targets(ctx, []string{o.from})
	if err != nil {
		return err
	}
	for obj, err := range targets[0].Objects(ctx, nil) {
		if err != nil {
			return err
		}
		reference := map[string]string{"ConfigMap": "configMapKeyRef", "Secret": "secretKeyRef"}[obj.GetKind()]
		if reference == "" {
			return errors.New("unsupported resource specified in --from")
		}
		data, _, err := unstructured.Get[map[string]any](obj, "data")
		if err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(data)) {
			if len(o.keys) > 0 && !slices.Contains(o.keys, key) {
				continue
			}
			source := map[string]any{reference: map[string]any{"key": key, "name": obj.GetName()}}
			name := envName(key)
			if name != key {
				s.Errorf("Warning: key %s transferred to %s", key, name)
			}
			o.variables = append(o.variables, map[string]any{"name": name, "valueFrom": source})
		}
	}
	return nil
}

// envName returns the variable name for a key: upper case, with '_' for invalid characters.
func envName(key string) string {
	return strings.ToUpper(regexp.MustCompile(`[^a-zA-Z0-9_]`).ReplaceAllString(key, "_"))
}

func (o *setEnvOptions) change(ctx context.Context, env *podenv.Printer, t *resource.Info, obj *unstructured.Object) error {
	containers, err := containersOf(obj)
	if err != nil {
		return err
	}
	found := false
	for _, c := range containers {
		matches, err := path.Match(o.containers, c.name)
		if err != nil {
			return fmt.Errorf("--containers %q: %w", o.containers, err)
		}
		if !matches {
			continue
		}
		found = true
		if err := o.changeContainer(c); err != nil {
			return err
		}
		if o.list {
			if err := env.Print(ctx, obj, c.content); err != nil {
				return err
			}
		}
	}
	if !found {
		env.Errorf("Warning: %s/%s does not have any containers matching %q", obj.GetKind(), t.Name, o.containers)
	}
	if o.list {
		return errNothingToSend
	}
	return nil
}

func (o *setEnvOptions) changeContainer(c container) error {
	var kept []any
	positions := map[string]int{}
	for _, item := range nested.List(c.content, "env") {
		name := nested.String(item, "name")
		if !slices.Contains(o.remove, name) {
			positions[name] = len(kept)
			kept = append(kept, item)
		}
	}
	set := map[string]bool{}
	for _, variable := range o.variables {
		name := nested.String(variable, "name")
		if set[name] { // as in kubectl, the first of the same name is set
			continue
		}
		set[name] = true
		at, exists := positions[name]
		switch {
		case exists && !o.overwrite:
			return fmt.Errorf("'%s' already has a value, and --overwrite is false", name)
		case exists:
			kept[at] = variable
		default:
			positions[name] = len(kept)
			kept = append(kept, variable)
		}
	}
	if len(kept) == 0 {
		delete(c.content, "env")
		return nil
	}
	c.content["env"] = kept
	return nil
}
