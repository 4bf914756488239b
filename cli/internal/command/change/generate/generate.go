// Package generate generates objects from flags, as the subcommands of kubectl create do: frequent built-in kinds, with kubectl's
// flags, names and defaults.
package generate

import (
	"context"
	"strings"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/unstructured"
)

// Generator generates the object of a subcommand of create.
type Generator struct {
	// Parent is the parent command, such as secret. It is empty for create.
	Parent string
	// Use begins with the command's name.
	Use, Short string
	Aliases    []string
	Required   []string // flags
	// Failure is the prefix of the error of a rejected object, such as "failed to create deployment: ". It may be empty.
	Failure  string
	AddFlags func(fs *pflag.FlagSet)
	// Values has the fields that flags set, for the completion of their values: TYPE.PATH by flag.
	Values map[string]string
	// Names has the types of the objects that flags name.
	Names map[string]string
	// HasData marks ConfigMaps and Secrets. Their names may end in a hash of their content.
	HasData bool
	// Generate returns the object. command is the arguments behind --.
	Generate func(ctx context.Context, env *Environment, name string, command []string) (*unstructured.Object, error)
}

// Environment gives generators access to the server and prints their warnings.
type Environment struct {
	// Resource returns the group and the plural name of a resource.
	Resource func(ctx context.Context, name string) (group, plural string, err error)
	// Object reads the object TYPE/NAME.
	Object func(ctx context.Context, pair string) (*unstructured.Object, error)
	// Warn prints a line to the standard error stream.
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

// list converts texts to the list type of decoded JSON.
func list(texts []string) []any {
	items := make([]any, len(texts))
	for i, text := range texts {
		items[i] = text
	}
	return items
}

// unique returns texts in their order, without duplicates.
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

// simple adapts a function of the name to Generate.
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
		Required: []string{"value"}, Failure: "failed to create priorityclass: ", Values: map[string]string{"preemption-policy": "priorityclasses.preemptionPolicy"},
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

// containerName returns the container name for an image: the image without registry, tag and digest.
func containerName(image string) string {
	name := image[strings.LastIndex(image, "/")+1:]
	name, _, _ = strings.Cut(name, ":")
	name, _, _ = strings.Cut(name, "@")
	return name
}
