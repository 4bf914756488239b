// Package rbac records the requests of a program or a test, and returns the smallest Roles for them:
//
//	recorder := rbac.NewRecorder(nil)
//	cfg.OnAttempt = recorder.OnAttempt
//	client, err := dynamic.Connect(ctx, cfg) // as an administrator
//	if err != nil {
//		return err
//	}
//	// … all requests of the program …
//	manifest, err := unstructured.EncodeYAML(recorder.Roles("shop-operator")...)
//
// See https://kubernetes.io/docs/reference/access-authn-authz/rbac/.
package rbac
