package com.example

import kotlinx.serialization.Serializable

/** An account; `userName` is unique. */
@Serializable
data class Account(
    val id: Long,
    val userName: String,
    val tags: List<String> = emptyList(),
) {
    init {
        require(userName.matches(Regex("""[a-z][\w.-]{2,}"""))) { "bad userName: '$userName'" }
    }

    val label get() = "@$userName (${tags.joinToString { "#$it" }})"
}

fun List<Account>.byName(name: String) = firstOrNull { it.userName.equals(name, ignoreCase = true) }
