export class A {
}
