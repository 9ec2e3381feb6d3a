fun main() {
    println("b")
}
