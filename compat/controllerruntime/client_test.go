package controllerruntime

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
)

// compare runs the steps on both sides, in order, and compares the outcome of each.
func compare(t *testing.T, options ctrlclient.Options, steps []step) {
	t.Helper()
	ours, theirs := sides(t)
	our := ours.client(t, options)
	their := theirs.client(t, options)
	for _, step := range steps {
		want, wantErr := step.run(t.Context(), theirs, their)
		got, gotErr := step.run(t.Context(), ours, our)
		assert.Equal(t, theirs.outcome(t, want, wantErr), ours.outcome(t, got, gotErr), step.name)
		assert.Equal(t, apierrors.ReasonForError(wantErr), apierrors.ReasonForError(gotErr), step.name)
		assert.Equal(t, meta.IsNoMatchError(wantErr), meta.IsNoMatchError(gotErr), step.name)
		assert.Equal(t, runtime.IsNotRegisteredError(wantErr), runtime.IsNotRegisteredError(gotErr), step.name)
	}
}

func deployment(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	replicas := int32(0)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
			},
		},
	}
}

func TestClient_TypedObjects(t *testing.T) {
	key := func(s *side, name string) ctrlclient.ObjectKey {
		return ctrlclient.ObjectKey{Namespace: s.namespace, Name: name}
	}
	compare(t, ctrlclient.Options{}, []step{
		{"create", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := deployment(s.namespace, "web")
			return obj, c.Create(ctx, obj)
		}},
		{"create with kind", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := s.configMap("kind")
			obj.SetGroupVersionKind(configMaps)
			return obj, c.Create(ctx, obj, ctrlclient.FieldOwner("owner"))
		}},
		{"create again", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := s.configMap("kind")
			return obj, c.Create(ctx, obj)
		}},
		{"create without namespace", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			return nil, c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
		}},
		{"create without name", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			return nil, c.Create(ctx, s.configMap(""))
		}},
		{"create dry run", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := s.configMap("dry")
			return obj, c.Create(ctx, obj, ctrlclient.DryRunAll)
		}},
		{"get", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"stale": "true"}}}
			return obj, c.Get(ctx, key(s, "web"), obj)
		}},
		{"get what dry run did not create", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			return nil, c.Get(ctx, key(s, "dry"), &corev1.ConfigMap{})
		}},
		{"get without name", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			return nil, c.Get(ctx, key(s, ""), &corev1.ConfigMap{})
		}},
		{"get without namespace", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			return nil, c.Get(ctx, ctrlclient.ObjectKey{Name: "kind"}, &corev1.ConfigMap{})
		}},
		{"get a name with a slash", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			return nil, c.Get(ctx, key(s, "a/b"), &corev1.ConfigMap{})
		}},
		{"get cluster-scoped with namespace", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := &corev1.Namespace{}
			return obj, c.Get(ctx, ctrlclient.ObjectKey{Namespace: "other", Name: s.namespace}, obj)
		}},
		{"update", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := &appsv1.Deployment{}
			if err := c.Get(ctx, key(s, "web"), obj); err != nil {
				return nil, err
			}
			obj.SetGroupVersionKind(deployments)
			obj.Labels = map[string]string{"app": "web", "changed": "true"}
			return obj, c.Update(ctx, obj)
		}},
		{"update conflict", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := s.configMap("kind")
			obj.ResourceVersion = "1"
			return nil, c.Update(ctx, obj)
		}},
		{"list", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			list := &appsv1.DeploymentList{Items: make([]appsv1.Deployment, 3)}
			return list, c.List(ctx, list, ctrlclient.InNamespace(s.namespace), ctrlclient.MatchingLabels{"app": "web"})
		}},
		{"list by field", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			list := &corev1.ConfigMapList{}
			return list, c.List(ctx, list, ctrlclient.InNamespace(s.namespace), ctrlclient.MatchingFields{"metadata.name": "kind"})
		}},
		{"list none", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			list := &corev1.ConfigMapList{}
			return list, c.List(ctx, list, ctrlclient.InNamespace(s.namespace), ctrlclient.MatchingLabels{"app": "none"})
		}},
		{"list by a field that is not served", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			return nil, c.List(ctx, &corev1.ConfigMapList{}, ctrlclient.InNamespace(s.namespace), ctrlclient.MatchingFields{"data.k": "v"})
		}},
		{"evict what is not there", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "none"}}
			return nil, c.SubResource("eviction").Create(ctx, pod, s.configMap("none"))
		}},
		{"not registered", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			return nil, c.Get(ctx, key(s, "x"), &notRegistered{})
		}},
	})
}

// notRegistered is a type that no scheme has.
type notRegistered struct{ corev1.ConfigMap }

func TestClient_UnstructuredAndMetadata(t *testing.T) {
	unknown := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Unknown"}
	compare(t, ctrlclient.Options{}, []step{
		{"create", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := untyped(configMaps, s.namespace, "web")
			obj.SetLabels(map[string]string{"app": "web"})
			return obj, c.Create(ctx, obj)
		}},
		{"create unknown kind", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			return nil, c.Create(ctx, untyped(unknown, s.namespace, "web"))
		}},
		{"create without kind", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			return nil, c.Create(ctx, untyped(schema.GroupVersionKind{}, s.namespace, "web"))
		}},
		{"get", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := untyped(configMaps, "", "")
			return obj, c.Get(ctx, ctrlclient.ObjectKey{Namespace: s.namespace, Name: "web"}, obj)
		}},
		{"get metadata", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := metadataOf(configMaps, "", "")
			return obj, c.Get(ctx, ctrlclient.ObjectKey{Namespace: s.namespace, Name: "web"}, obj)
		}},
		{"get metadata of none", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			return nil, c.Get(ctx, ctrlclient.ObjectKey{Namespace: s.namespace, Name: "none"}, metadataOf(configMaps, "", ""))
		}},
		{"update", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := untyped(configMaps, s.namespace, "web")
			_ = unstructuredv1.SetNestedField(obj.Object, "v", "data", "k")
			return obj, c.Update(ctx, obj)
		}},
		{"patch metadata", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := metadataOf(configMaps, s.namespace, "web")
			patch := ctrlclient.MergeFrom(obj.DeepCopy())
			obj.Labels = map[string]string{"patched": "true"}
			return obj, c.Patch(ctx, obj, patch)
		}},
		{"list", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			list := &unstructuredv1.UnstructuredList{}
			list.SetGroupVersionKind(configMaps.GroupVersion().WithKind("ConfigMapList"))
			return list, c.List(ctx, list, ctrlclient.InNamespace(s.namespace), ctrlclient.MatchingLabels{"patched": "true"})
		}},
		{"list with the kind of items", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			list := &unstructuredv1.UnstructuredList{}
			list.SetGroupVersionKind(configMaps)
			return list, c.List(ctx, list, ctrlclient.InNamespace(s.namespace), ctrlclient.MatchingLabels{"patched": "true"})
		}},
		{"list none", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			list := &unstructuredv1.UnstructuredList{}
			list.SetGroupVersionKind(configMaps.GroupVersion().WithKind("ConfigMapList"))
			return list, c.List(ctx, list, ctrlclient.InNamespace(s.namespace), ctrlclient.MatchingLabels{"patched": "none"})
		}},
		{"list into an object", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			list := &unstructuredv1.Unstructured{}
			list.SetGroupVersionKind(configMaps)
			err := c.List(ctx, list, ctrlclient.InNamespace(s.namespace), ctrlclient.MatchingLabels{"patched": "true"})
			items, _, _ := unstructuredv1.NestedSlice(list.Object, "items")
			return []any{list.GetKind(), len(items)}, err
		}},
		{"list metadata", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(configMaps.GroupVersion().WithKind("ConfigMapList"))
			return list, c.List(ctx, list, ctrlclient.InNamespace(s.namespace), ctrlclient.MatchingLabels{"patched": "true"})
		}},
		{"create metadata", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			return c.Create(ctx, metadataOf(configMaps, s.namespace, "m")) != nil, nil
		}},
		{"update metadata", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			return c.Update(ctx, metadataOf(configMaps, s.namespace, "m")) != nil, nil
		}},
		{"delete metadata", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			return nil, c.Delete(ctx, metadataOf(configMaps, s.namespace, "web"), ctrlclient.Preconditions{ResourceVersion: ptr("1")})
		}},
		{"delete", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := untyped(configMaps, s.namespace, "web")
			return obj, c.Delete(ctx, obj, ctrlclient.GracePeriodSeconds(0), ctrlclient.PropagationPolicy(metav1.DeletePropagationBackground))
		}},
		{"delete again", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			return nil, c.Delete(ctx, untyped(configMaps, s.namespace, "web"))
		}},
		{"delete all metadata", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			if err := c.Create(ctx, s.configMap("one")); err != nil {
				return nil, err
			}
			err := c.DeleteAllOf(ctx, metadataOf(configMaps, "", ""), ctrlclient.InNamespace(s.namespace), ctrlclient.MatchingLabels{"app": "one"})
			if err != nil {
				return nil, err
			}
			return nil, c.Get(ctx, ctrlclient.ObjectKey{Namespace: s.namespace, Name: "one"}, &corev1.ConfigMap{})
		}},
		{"delete all dry run", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			if err := c.Create(ctx, s.configMap("two")); err != nil {
				return nil, err
			}
			return nil, c.DeleteAllOf(ctx, &corev1.ConfigMap{}, ctrlclient.InNamespace(s.namespace), ctrlclient.DryRunAll)
		}},
		{"delete all", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			return nil, c.DeleteAllOf(ctx, &corev1.ConfigMap{}, ctrlclient.InNamespace(s.namespace), ctrlclient.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", "two")})
		}},
	})
}

func ptr[T any](value T) *T { return &value }

func TestClient_PatchAndApply(t *testing.T) {
	compare(t, ctrlclient.Options{FieldOwner: "default-owner", FieldValidation: metav1.FieldValidationStrict}, []step{
		{"create", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := deployment(s.namespace, "web")
			return obj, c.Create(ctx, obj)
		}},
		{"merge patch", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := deployment(s.namespace, "web")
			return obj, c.Patch(ctx, obj, ctrlclient.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)))
		}},
		{"strategic patch", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := deployment(s.namespace, "web")
			patch := ctrlclient.StrategicMergeFrom(obj.DeepCopy())
			obj.Spec.Template.Spec.Containers[0].Image = "app:2"
			return obj, c.Patch(ctx, obj, patch, ctrlclient.FieldOwner("patcher"))
		}},
		{"JSON patch dry run", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := untyped(deployments, s.namespace, "web")
			return obj, c.Patch(ctx, obj, ctrlclient.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/replicas","value":3}]`)), ctrlclient.DryRunAll)
		}},
		{"unknown field", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := untyped(deployments, s.namespace, "web")
			return nil, c.Patch(ctx, obj, ctrlclient.RawPatch(types.MergePatchType, []byte(`{"spec":{"unknown":true}}`)))
		}},
		{"no namespace", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			err := c.Patch(ctx, untyped(configMaps, "", "web"), ctrlclient.RawPatch(types.MergePatchType, []byte(`{}`)))
			return apierrors.IsNotFound(err), nil
		}},
		{"optimistic lock", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := deployment(s.namespace, "web")
			obj.ResourceVersion = "1"
			patch := ctrlclient.MergeFromWithOptions(obj.DeepCopy(), ctrlclient.MergeFromWithOptimisticLock{})
			obj.Labels["a"] = "c"
			return nil, c.Patch(ctx, obj, patch)
		}},
		{"apply typed", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := coreapply.ConfigMap("applied", s.namespace).WithData(map[string]string{"k": "v"})
			err := c.Apply(ctx, obj, ctrlclient.FieldOwner("applier"))
			obj.ObjectMetaApplyConfiguration = nil
			return obj, err
		}},
		{"apply conflict", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			return nil, c.Apply(ctx, coreapply.ConfigMap("applied", s.namespace).WithData(map[string]string{"k": "w"}))
		}},
		{"apply forced", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := untyped(configMaps, s.namespace, "applied")
			_ = unstructuredv1.SetNestedField(obj.Object, "w", "data", "k")
			return obj, c.Apply(ctx, ctrlclient.ApplyConfigurationFromUnstructured(obj), ctrlclient.ForceOwnership)
		}},
		{"apply without kind", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			return c.Apply(ctx, ctrlclient.ApplyConfigurationFromUnstructured(untyped(schema.GroupVersionKind{}, s.namespace, "x"))) != nil, nil
		}},
		{"apply status", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := appsapply.Deployment("web", s.namespace).WithStatus(appsapply.DeploymentStatus().WithObservedGeneration(0).WithReplicas(0).WithUnavailableReplicas(7))
			err := c.Status().Apply(ctx, obj, ctrlclient.FieldOwner("applier"), ctrlclient.ForceOwnership)
			return []any{obj.Spec.Replicas, obj.Status.UnavailableReplicas}, err
		}},
	})
}

func TestClient_Subresources(t *testing.T) {
	compare(t, ctrlclient.Options{}, []step{
		{"create", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := deployment(s.namespace, "web")
			return obj, c.Create(ctx, obj)
		}},
		{"get scale", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			scale := &autoscalingv1.Scale{}
			return scale, c.SubResource("scale").Get(ctx, deployment(s.namespace, "web"), scale)
		}},
		{"update scale", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 2}}
			return scale, c.SubResource("scale").Update(ctx, deployment(s.namespace, "web"), ctrlclient.WithSubResourceBody(scale))
		}},
		{"patch scale", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			scale := &autoscalingv1.Scale{}
			patch := ctrlclient.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":1}}`))
			return scale, c.SubResource("scale").Patch(ctx, deployment(s.namespace, "web"), patch, ctrlclient.WithSubResourceBody(scale))
		}},
		{"unstructured scale", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			scale := untyped(schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}, "", "")
			return scale, c.SubResource("scale").Get(ctx, untyped(deployments, s.namespace, "web"), scale)
		}},
		{"patch status", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := deployment(s.namespace, "web")
			return obj.Spec, c.Status().Patch(ctx, obj, ctrlclient.RawPatch(types.MergePatchType, []byte(`{"status":{"unavailableReplicas":7}}`)))
		}},
		{"patch metadata of status", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := metadataOf(deployments, s.namespace, "web")
			return obj.Name, c.Status().Patch(ctx, obj, ctrlclient.RawPatch(types.MergePatchType, []byte(`{"status":{"unavailableReplicas":8}}`)))
		}},
		{"update status conflict", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			obj := deployment(s.namespace, "web")
			obj.ResourceVersion = "1"
			return nil, c.Status().Update(ctx, obj)
		}},
		{"token", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "robot"}}
			if err := c.Create(ctx, account); err != nil {
				return nil, err
			}
			token := &authenticationv1.TokenRequest{}
			err := c.SubResource("token").Create(ctx, account, token)
			return token.Status.Token != "", err
		}},
		{"unknown subresource", func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error) {
			return nil, c.SubResource("unknown").Get(ctx, deployment(s.namespace, "web"), &autoscalingv1.Scale{})
		}},
	})
}
