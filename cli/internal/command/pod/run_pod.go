package pod

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/unstructured"
)

// podOptions are the fields of the pod of run.
type podOptions struct {
	image, pullPolicy, restart, port, labels string
	annotations, env                         []string
	isCommand, privileged, leaveStdinOpen    bool
	stdin, tty                               bool
}

func (o *podOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.image, "image", "", "The image for the container to run.")
	fs.StringVar(&o.pullPolicy, "image-pull-policy", "", "The image pull policy for the container.  If left empty, this value will not be specified by the client and defaulted by the server.")
	fs.StringArrayVar(&o.annotations, "annotations", nil, "Annotations to apply to the pod.")
	fs.StringArrayVar(&o.env, "env", nil, "Environment variables to set in the container.")
	fs.StringVar(&o.port, "port", "", "The port that this container exposes.")
	fs.StringVarP(&o.labels, "labels", "l", "", "Comma separated labels to apply to the pod. Will override previous values.")
	fs.StringVar(&o.restart, "restart", "Always", "The restart policy for this Pod.  Legal values [Always, OnFailure, Never].")
	fs.BoolVar(&o.isCommand, "command", false, "If true and extra arguments are present, use them as the 'command' field in the container, rather than the 'args' field which is the default.")
	fs.BoolVar(&o.privileged, "privileged", false, "If true, run the container in privileged mode.")
	fs.BoolVar(&o.leaveStdinOpen, "leave-stdin-open", false, "If the pod is started in interactive mode or with stdin, leave stdin open after the first attach completes. By default, stdin will be closed after the first attach completes.")
}

type object = map[string]any

// pod returns the pod with a container.
func (o *podOptions) pod(name string, args []string) (*unstructured.Object, error) {
	labels := object{"run": name}
	if o.labels != "" {
		var err error
		if labels, err = command.ParseLabels(o.labels); err != nil {
			return nil, err
		}
	}
	metadata := object{"name": name, "labels": labels}
	annotations, err := parsePairs(o.annotations, func(pair string) error { return fmt.Errorf("invalid annotations format: %s", pair) })
	if err != nil {
		return nil, err
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	container, err := o.container(name, args)
	if err != nil {
		return nil, err
	}
	return &unstructured.Object{Object: object{
		"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
		"spec":   object{"containers": []any{container}, "dnsPolicy": "ClusterFirst", "restartPolicy": o.restart},
		"status": object{},
	}}, nil
}

func (o *podOptions) container(name string, args []string) (object, error) {
	container := object{"name": name, "image": o.image, "resources": object{}}
	if o.stdin {
		container["stdin"] = true
		if !o.leaveStdinOpen {
			container["stdinOnce"] = true
		}
	}
	if o.tty {
		container["tty"] = true
	}
	if o.privileged {
		container["securityContext"] = object{"privileged": true}
	}
	if o.pullPolicy != "" {
		container["imagePullPolicy"] = o.pullPolicy
	}
	if len(args) > 0 {
		values := make([]any, len(args))
		for i, arg := range args {
			values[i] = arg
		}
		container[map[bool]string{true: "command", false: "args"}[o.isCommand]] = values
	}
	var env []any
	for _, pair := range o.env {
		key, value, found := strings.Cut(pair, "=")
		if !found || key == "" || len(validation.IsEnvVarName(key)) > 0 {
			return nil, fmt.Errorf("invalid env: %v", pair)
		}
		variable := object{"name": key}
		if value != "" {
			variable["value"] = value
		}
		env = append(env, variable)
	}
	if len(env) > 0 {
		container["env"] = env
	}
	if o.port != "" {
		port, err := strconv.Atoi(o.port)
		if err != nil {
			return nil, err
		}
		container["ports"] = []any{object{"containerPort": int64(port)}}
	}
	return container, nil
}

// service returns the service of --expose.
func (o *podOptions) service(name string) (*unstructured.Object, error) {
	metadata := object{"name": name}
	selector := object{"run": name}
	if o.labels != "" {
		labels, err := command.ParseLabels(o.labels)
		if err != nil {
			return nil, err
		}
		metadata["labels"] = labels
		selector, _ = command.ParseLabels(o.labels) // parsed above; objects share no maps
	}
	port, err := strconv.Atoi(o.port)
	if err != nil {
		return nil, err
	}
	return &unstructured.Object{Object: object{
		"apiVersion": "v1", "kind": "Service", "metadata": metadata,
		"spec": object{
			"selector": selector,
			"ports":    []any{object{"port": int64(port), "protocol": "TCP", "targetPort": int64(port)}},
		},
		"status": object{"loadBalancer": object{}},
	}}, nil
}

// parsePairs parses KEY=VALUE.
func parsePairs(pairs []string, invalid func(pair string) error) (object, error) {
	values := object{}
	for _, pair := range pairs {
		key, value, found := strings.Cut(pair, "=")
		if !found || key == "" {
			return nil, invalid(pair)
		}
		values[key] = value
	}
	return values, nil
}
