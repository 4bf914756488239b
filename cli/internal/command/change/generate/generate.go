// Package generate makes objects from flags, as the subcommands of kubectl create do: kinds of the server's own that are
// frequent, with kubectl's flags, names and defaults.
package generate

import (
	"context"
	"strings"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/unstructured"
)

// Generator makes the object of one subcommand of create.
type Generator struct {
	// Parent is the command above it, such as secret; empty for create itself.
	Parent string
	// Use begins with the command's name.
	Use, Short string
	Aliases    []string
	Required   []string // flags
	// Failure begins the error of a rejected object: "failed to create deployment: ". Empty leaves the error as it is.
	Failure  string
	AddFlags func(fs *pflag.FlagSet)
	// HasData marks ConfigMaps and Secrets, whose name may have a hash of their content.
	HasData bool
	// Generate returns the object; command are the arguments behind --.
	Generate func(ctx context.Context, env *Environment, name string, command []string) (*unstructured.Object, error)
}

// Environment gives generators access to the server and to the warnings of the program.
type Environment struct {
	// Resource returns the group and the plural of a resource.
	Resource func(ctx context.Context, name string) (group, plural string, err error)
	// Object reads an object: TYPE/NAME.
	Object func(ctx context.Context, pair string) (*unstructured.Object, error)
	// Warn prints a line for people.
	Warn func(format string, args ...any)
}

// All returns the generators.
func All() []*Generator {
	return []*Generator{
		namespace(), configMap(), serviceAccount(),
		genericSecret(), tlsSecret(), dockerSecret(),
		deployment(), job(), cronJob(),
		clusterIPService(), nodePortService(), loadBalancerService(), externalNameService(),
		role(), clusterRole(), roleBinding(), clusterRoleBinding(),
		quota(), disruptionBudget(), priorityClass(), ingress(),
	}
}

type object = map[string]any

// newObject returns an object with metadata and the given fields.
func newObject(apiVersion, kind, name string, fields object) *unstructured.Object {
	content := object{"apiVersion": apiVersion, "kind": kind, "metadata": object{"name": name}}
	for field, value := range fields {
		content[field] = value
	}
	return &unstructured.Object{Object: content}
}

// list returns texts as decoded JSON has them.
func list(texts []string) []any {
	items := make([]any, len(texts))
	for i, text := range texts {
		items[i] = text
	}
	return items
}

// unique returns texts without repetitions, in their order.
func unique(texts []string) []string {
	var result []string
	seen := map[string]bool{}
	for _, text := range texts {
		if !seen[text] {
			seen[text] = true
			result = append(result, text)
		}
	}
	return result
}

// simple is a Generate that needs the name only.
func simple(generate func(name string) (*unstructured.Object, error)) func(context.Context, *Environment, string, []string) (*unstructured.Object, error) {
	return func(_ context.Context, _ *Environment, name string, _ []string) (*unstructured.Object, error) {
		return generate(name)
	}
}

func namespace() *Generator {
	return &Generator{
		Use: "namespace NAME", Short: "Create a namespace with the specified name", Aliases: []string{"ns"},
		Generate: simple(func(name string) (*unstructured.Object, error) {
			return newObject("v1", "Namespace", name, object{"spec": object{}, "status": object{}}), nil
		}),
	}
}

func serviceAccount() *Generator {
	return &Generator{
		Use: "serviceaccount NAME", Short: "Create a service account with the specified name", Aliases: []string{"sa"},
		Failure: "failed to create serviceaccount: ",
		Generate: simple(func(name string) (*unstructured.Object, error) {
			return newObject("v1", "ServiceAccount", name, nil), nil
		}),
	}
}

func priorityClass() *Generator {
	var value int32
	var isDefault bool
	var description, preemption string
	return &Generator{
		Use: "priorityclass NAME --value=VALUE", Short: "Create a priority class with the specified name", Aliases: []string{"pc"},
		Required: []string{"value"}, Failure: "failed to create priorityclass: ",
		AddFlags: func(fs *pflag.FlagSet) {
			fs.Int32Var(&value, "value", 0, "the value of this priority class.")
			fs.BoolVar(&isDefault, "global-default", false, "global-default specifies whether this PriorityClass should be considered as the default priority.")
			fs.StringVar(&description, "description", "", "description is an arbitrary string that usually provides guidelines on when this priority class should be used.")
			fs.StringVar(&preemption, "preemption-policy", "PreemptLowerPriority", "preemption-policy is the policy for preempting pods with lower priority.")
		},
		Generate: simple(func(name string) (*unstructured.Object, error) {
			fields := object{"value": int64(value), "preemptionPolicy": preemption}
			if isDefault {
				fields["globalDefault"] = true
			}
			if description != "" {
				fields["description"] = description
			}
			return newObject("scheduling.k8s.io/v1", "PriorityClass", name, fields), nil
		}),
	}
}

// containerName returns the name of a container for its image: that of the image, without registry, tag and digest.
func containerName(image string) string {
	name := image[strings.LastIndex(image, "/")+1:]
	name, _, _ = strings.Cut(name, ":")
	name, _, _ = strings.Cut(name, "@")
	return name
}
