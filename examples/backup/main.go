// Command backup writes the objects of namespaces to a folder, and creates them again in an empty cluster:
//
//	backup save ./backup shop
//	backup restore ./backup
//
// Objects that controllers create again, such as the Pods of a Deployment, are left out.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	isSave := len(args) > 2 && args[0] == "save"
	if !isSave && (len(args) != 2 || args[0] != "restore") {
		return errors.New("usage: backup save FOLDER NAMESPACE... | backup restore FOLDER")
	}
	client, err := dynamic.Connect(ctx, nil)
	if err != nil {
		return err
	}
	defer client.Close()
	if isSave {
		return save(ctx, client, args[1], args[2:], out)
	}
	return restore(ctx, client, args[1], out)
}

// save writes the objects of namespaces, the namespaces and the definitions of their custom resources.
func save(ctx context.Context, client *dynamic.Client, folder string, namespaces []string, out io.Writer) error {
	kinds := map[string]bool{}
	for item, err := range inventory.List[unstructured.Object](ctx, client, &inventory.ListOptions{Namespaces: namespaces}) {
		if err != nil {
			return err
		}
		if resource := item.Resource.APIResource(); resource.Supports("create") && !inventory.MadeByController(item.Object) {
			kinds[resource.GVR.GroupResource().String()] = true
			if err := write(folder, item.Object, out); err != nil {
				return err
			}
		}
	}
	isScope := func(r *discovery.Resource) bool {
		return r.GVK.Kind == "Namespace" || r.GVK.Kind == "CustomResourceDefinition"
	}
	for item, err := range inventory.List[unstructured.Object](ctx, client, &inventory.ListOptions{Select: isScope}) {
		if err != nil {
			return err
		}
		if name := item.Object.GetName(); kinds[name] || slices.Contains(namespaces, name) {
			if err := write(folder, item.Object, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// write writes an object to a file of its own. The UID is kept: restore finds the owners of objects by it.
func write(folder string, obj *unstructured.Object, out io.Writer) error {
	fmt.Fprintln(out, "saving", obj.GetKind(), obj.GetName())
	portable := inventory.Portable(obj)
	portable.SetUID(obj.GetUID())
	data, err := unstructured.EncodeYAML(portable)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, string(obj.GetUID())+".yaml"), data, 0o600)
}

// restore creates the saved objects: definitions and namespaces first, and owners before their dependents.
func restore(ctx context.Context, client *dynamic.Client, folder string, out io.Writer) error {
	reader := manifest.Reader{Paths: []string{folder}}
	read, err := reader.Read(ctx)
	if err != nil {
		return err
	}
	var objects []*unstructured.Object
	for _, object := range read {
		objects = append(objects, object.Object)
	}
	plan, err := dynamic.InstallOrder(objects, "")
	if err != nil {
		return err
	}
	inOrder := func(yield func(*unstructured.Object, error) bool) {
		for _, obj := range slices.Concat(plan.Stages...) {
			if !yield(obj, nil) {
				return
			}
		}
	}
	created := map[types.UID]types.UID{} // the UIDs in this cluster by those of the saved objects
	for object, err := range client.ForObjects(ctx, inOrder) {
		if err != nil {
			return err
		}
		object.Object.SetOwnerReferences(ownersIn(created, object.Object))
		fmt.Fprintln(out, "restoring", object.Object.GetKind(), object.Object.GetName())
		live, err := object.Resource.Create(ctx, object.Object, nil)
		if err != nil {
			return err
		}
		created[object.Object.GetUID()] = live.GetUID()
	}
	return nil
}

// ownersIn returns the owner references with the new UIDs. An object with an unknown owner would be deleted as garbage.
func ownersIn(created map[types.UID]types.UID, obj *unstructured.Object) (owners []metav1.OwnerReference) {
	for _, owner := range obj.GetOwnerReferences() {
		if owner.UID = created[owner.UID]; owner.UID != "" {
			owners = append(owners, owner)
		}
	}
	return owners
}
