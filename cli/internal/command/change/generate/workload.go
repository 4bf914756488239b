package generate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/anykind/anykind/unstructured"
)

// newContainer returns a container with the fields written by the API's Go types.
func newContainer(name, image string, command []string) object {
	container := object{"name": name, "image": image, "resources": object{}}
	if len(command) > 0 {
		container["command"] = list(command)
	}
	return container
}

func deployment() *Generator {
	var images []string
	var port, replicas int32
	return &Generator{
		Use: "deployment NAME --image=image -- [COMMAND] [args...]", Short: "Create a deployment with the specified name", Aliases: []string{"deploy"},
		Required: []string{"image"}, Failure: "failed to create deployment: ",
		AddFlags: func(fs *pflag.FlagSet) {
			fs.StringSliceVar(&images, "image", nil, "Image names to run. A deployment can have multiple images set for multi-container pod.")
			fs.Int32Var(&port, "port", -1, "The containerPort that this deployment exposes.")
			fs.Int32VarP(&replicas, "replicas", "r", 1, "Number of replicas to create. Default is 1.")
		},
		Generate: func(_ context.Context, _ *Environment, name string, command []string) (*unstructured.Object, error) {
			if len(images) > 1 && len(command) > 0 {
				return nil, errors.New("cannot specify multiple --image options and command")
			}
			var containers []any
			for _, image := range images {
				containers = append(containers, newContainer(uniqueName(containerName(image)), image, command))
			}
			if port >= 0 && len(containers) > 0 {
				containers[0].(object)["ports"] = []any{object{"containerPort": int64(port)}} //nolint:forcetypeassert // made above
			}
			labels := func() object { return object{"app": name} }
			obj := newObject("apps/v1", "Deployment", name, object{
				"spec": object{
					"replicas": int64(replicas),
					"selector": object{"matchLabels": labels()},
					"strategy": object{},
					"template": object{"metadata": object{"labels": labels()}, "spec": object{"containers": containers}},
				},
				"status": object{},
			})
			return obj, unstructured.Set(obj, labels(), "metadata", "labels")
		},
	}
}

// uniqueName returns the name of a container. A name with '_' or '.' gets a random suffix to stay unique.
func uniqueName(name string) string {
	if !strings.ContainsAny(name, "_.") {
		return name
	}
	return fmt.Sprintf("%s-%s", strings.NewReplacer("_", "-", ".", "-").Replace(name), rand.String(5))
}

// jobSpec returns the spec of a job with a container named like the job.
func jobSpec(name, image, restart string, command []string) object {
	return object{"template": object{
		"metadata": object{},
		"spec":     object{"containers": []any{newContainer(name, image, command)}, "restartPolicy": restart},
	}}
}

func job() *Generator {
	var image, from string
	return &Generator{
		Use: "job NAME --image=image [--from=cronjob/name] -- [COMMAND] [args...]", Short: "Create a job with the specified name",
		Failure: "failed to create job: ",
		AddFlags: func(fs *pflag.FlagSet) {
			fs.StringVar(&image, "image", "", "Image name to run.")
			fs.StringVar(&from, "from", "", "The name of the resource to create a Job from (only CronJob is supported).")
		},
		Generate: func(ctx context.Context, env *Environment, name string, command []string) (*unstructured.Object, error) {
			switch {
			case (image == "") == (from == ""):
				return nil, errors.New("either --image or --from must be specified")
			case from != "" && len(command) > 0:
				return nil, errors.New("cannot specify --from and command")
			case from == "":
				spec := jobSpec(name, image, "Never", command)
				return newObject("batch/v1", "Job", name, object{"spec": spec, "status": object{}}), nil
			}
			cronJob, err := env.Object(ctx, from)
			if err != nil {
				return nil, err
			}
			return jobFrom(name, cronJob)
		},
	}
}

// jobFrom returns a job from the template of a CronJob, with the CronJob as controller.
func jobFrom(name string, cronJob *unstructured.Object) (*unstructured.Object, error) {
	if cronJob.GetKind() != "CronJob" {
		return nil, fmt.Errorf("unknown object type %s", cronJob.GetKind())
	}
	template := []string{"spec", "jobTemplate"}
	spec, _, err := unstructured.Get[object](cronJob, append(template, "spec")...)
	if err != nil {
		return nil, err
	}
	annotations, _, _ := unstructured.Get[object](cronJob, append(template, "metadata", "annotations")...)
	if annotations == nil {
		annotations = object{}
	}
	if annotations["cronjob.kubernetes.io/instantiate"] == nil {
		annotations["cronjob.kubernetes.io/instantiate"] = "manual"
	}
	metadata := object{"name": name, "annotations": annotations, "ownerReferences": []any{object{
		"apiVersion": "batch/v1", "kind": "CronJob", "name": cronJob.GetName(), "uid": string(cronJob.GetUID()), "controller": true,
	}}}
	if labels, found, _ := unstructured.Get[object](cronJob, append(template, "metadata", "labels")...); found {
		metadata["labels"] = labels
	}
	return newObject("batch/v1", "Job", name, object{"metadata": metadata, "spec": spec, "status": object{}}), nil
}

func cronJob() *Generator {
	var image, schedule, restart string
	return &Generator{
		Use: "cronjob NAME --image=image --schedule='0/5 * * * ?' -- [COMMAND] [args...]", Short: "Create a cron job with the specified name", Aliases: []string{"cj"},
		Required: []string{"image", "schedule"}, Failure: "failed to create cronjob: ",
		Values: map[string]string{"restart": "cronjobs.spec.jobTemplate.spec.template.spec.restartPolicy"},
		AddFlags: func(fs *pflag.FlagSet) {
			fs.StringVar(&image, "image", "", "Image name to run.")
			fs.StringVar(&schedule, "schedule", "", "A schedule in the Cron format the job should be run with.")
			fs.StringVar(&restart, "restart", "", "job's restart policy. supported values: OnFailure, Never")
		},
		Generate: func(_ context.Context, _ *Environment, name string, command []string) (*unstructured.Object, error) {
			policy := restart
			if policy == "" {
				policy = "OnFailure"
			}
			template := object{"metadata": object{"name": name}, "spec": jobSpec(name, image, policy, command)}
			spec := object{"schedule": schedule, "jobTemplate": template}
			return newObject("batch/v1", "CronJob", name, object{"spec": spec, "status": object{}}), nil
		},
	}
}
